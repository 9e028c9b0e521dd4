//go:build linux

package recipes_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFullDiskBehindStandardOutput(t *testing.T) {
	for name, talk := range talks {
		if talk.want == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serveTalk(t, name, func(p peer, _ int) { _ = talk.run(p, nil, nil) })
			p := startFull(t, name, argumentsOf(t, name, address)...)
			if talk.input != "" {
				fmt.Fprintln(p.Stdin, talk.input) // it may have ended
			}
			require.Equal(t, 4, p.ExitCode(), p)
			require.Contains(t, p.String(), syscall.ENOSPC.Error())
		})
	}
}
