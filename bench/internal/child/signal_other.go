//go:build !unix

package child

import "errors"

// Halt is an error.
func (p *Process) Halt() error { return errors.ErrUnsupported }

// Resume is an error.
func (p *Process) Resume() error { return errors.ErrUnsupported }

// Terminate is an error.
func (p *Process) Terminate() error { return errors.ErrUnsupported }
