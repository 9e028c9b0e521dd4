//go:build !linux

package netwatch

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
)

func listen(chan error) (stop func(), err error) {
	err = fmt.Errorf("netwatch: changes are not announced on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	return func() {}, err
}

func addresses(names map[int]string) ([]Address, error) { return listed(names) }

func route(to netip.Addr, _ map[int]string, all []Address) (Route, error) {
	return sourceRoute(to, all)
}
