package child

import (
	"os/exec"
	"syscall"
)

// DieWithParent lets the kernel kill cmd when this process dies. (When the thread
// dies that has started it, in fact; Go keeps its threads.) One that is stopped would
// not see the end of its standard input.
func DieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
