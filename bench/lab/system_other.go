//go:build !unix

package lab

import (
	"errors"
	"fmt"
	"math"
)

// RaiseFiles knows of no limit.
func RaiseFiles() (uint64, error) { return math.MaxInt64, nil }

func (p *process) halt() error { return fmt.Errorf("stop server: %w", errors.ErrUnsupported) }

func (p *process) resume() error { return fmt.Errorf("resume server: %w", errors.ErrUnsupported) }
