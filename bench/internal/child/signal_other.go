//go:build !unix

package child

import (
	"errors"
	"fmt"
)

// Halt is an error.
func (p *Process) Halt() error { return fmt.Errorf("stop child: %w", errors.ErrUnsupported) }

// Resume is an error.
func (p *Process) Resume() error { return fmt.Errorf("resume child: %w", errors.ErrUnsupported) }

// Terminate is an error.
func (p *Process) Terminate() error { return fmt.Errorf("end child: %w", errors.ErrUnsupported) }
