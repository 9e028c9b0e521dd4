//go:build unix

package child

import "syscall"

// Halt stops the child (SIGSTOP): its sockets stay open, and nothing is answered.
func (p *Process) Halt() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets it go on (SIGCONT).
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Terminate asks the child to end (SIGTERM).
func (p *Process) Terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
