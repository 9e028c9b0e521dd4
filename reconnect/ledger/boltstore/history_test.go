//go:build unix

package boltstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Random histories of a Conn with a ledger, whose messages are in a file. A process has the file. A history may kill the process, and
// then the next process has the file, or a copy of it. See package reconnect/internal/history.
func TestTheFileIsTheSameAfterAKillInAHistory(t *testing.T) {
	dir, histories := t.TempDir(), 300
	if os.Getenv("REDIAL_LONG") != "" {
		histories = 20_000
	}
	self, err := os.Executable()
	require.NoError(t, err)
	binary := filepath.Join(dir, "history.test")
	const history = "../../internal/history"
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Dir = history
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)

	run := exec.Command(binary, "-test.run=^TestHistories$", "-seed=1", "-first", fmt.Sprint("-histories=", histories))
	run.Dir = history
	run.Env = append(os.Environ(), "REDIAL_HISTORY_STORE="+self, roleEnv+"=history", dirEnv+"="+dir, "TMPDIR="+dir)
	output, err = run.CombinedOutput()
	require.NoError(t, err, "%s", output)
	runs, err := os.ReadFile(filepath.Join(dir, runsFile))
	require.NoError(t, err)
	first, later := 0, 0
	for _, last := range strings.Fields(string(runs)) {
		if last == "0" {
			first++
		} else {
			later++
		}
	}
	t.Logf("%d histories: %d processes with a new file, %d with the file of one that was killed", histories, first, later)
	require.NotZero(t, first)
	require.NotZero(t, later)
	left, err := filepath.Glob(filepath.Join(dir, "*.db*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
