//go:build !unix

package main

import (
	"errors"
	"fmt"
	"time"
)

func usage() (time.Duration, error) {
	return 0, fmt.Errorf("read CPU time: %w", errors.ErrUnsupported)
}
