//go:build !linux

package peers

import "os/exec"

// dieWithParent does nothing: a child ends when its standard input does.
func dieWithParent(*exec.Cmd) {}
