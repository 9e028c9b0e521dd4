//go:build !linux && !js && !wasip1

package netwatch

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
)

func listen() (*announcer, error) {
	return &announcer{}, fmt.Errorf("netwatch: changes are not announced on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func addresses(names map[int]string) ([]Address, error) { return interfaceAddresses(names) }

func route(to netip.Addr, _ map[int]string, all []Address) (Route, error) {
	return sourceRoute(to, all)
}
