//go:build js || wasip1

package netwatch

import (
	"errors"
	"fmt"
	"runtime"
)

func thisMachine() (machine, error) {
	return machine{}, fmt.Errorf("netwatch: the network cannot be seen on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
