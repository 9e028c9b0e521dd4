//go:build !linux

package main

import (
	"errors"
	"fmt"
)

func freeMemory() (float64, error) {
	return 0, fmt.Errorf("read free memory: %w", errors.ErrUnsupported)
}
