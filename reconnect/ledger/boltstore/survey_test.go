package boltstore_test

// This file damages files bit by bit, and counts how each case ends.

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cases returns how many bits the test flips.
func cases() uint64 {
	if os.Getenv("REDIAL_LONG") != "" {
		return 10_000
	}
	return 500
}

// A bit that has changed, wherever it is in the file, costs no message without a word: it has no
// effect, it is reported, or it is an error.
func TestADamagedBitIsNeverSilent(t *testing.T) {
	dir := t.TempDir()
	for _, s := range samples {
		require.NoError(t, s.make(filepath.Join(dir, s.name)))
	}
	counts := make(map[string]map[string]int) // by place, and outcome
	total := make(map[string]int)
	for first := uint64(1); first <= cases(); {
		lines, end := surveyed(t, dir, first)
		for _, line := range lines {
			n, where, outcome := first, "", end
			if parts := strings.SplitN(line, ";", 3); len(parts) == 3 {
				where = parts[1]
				if parts[2] != "" {
					outcome = parts[2]
				}
			}
			if counts[where] == nil {
				counts[where] = make(map[string]int)
			}
			counts[where][outcome]++
			total[outcome]++
			if !slices.Contains([]string{noEffect, reported, failed}, outcome) {
				t.Errorf("case %d of seed %d: %s: %s", n, surveySeed, where, outcome)
			}
			first++
		}
		require.NotEmpty(t, lines, "the surveyor does nothing: %s", end)
	}
	counts["all"] = total
	t.Logf("seed %d, %d bits\n%s", surveySeed, cases(), table(counts))
	for _, outcome := range []string{noEffect, reported, failed} {
		require.NotZero(t, total[outcome], outcome)
	}
}

// surveyed runs a surveyor from a case on, until all are tried, or one has ended it. It returns a line
// for each case, of which the last may have no outcome, and then what became of it.
func surveyed(t *testing.T, dir string, first uint64) (lines []string, end string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=surveyor", dirEnv+"="+dir, fmt.Sprint(firstEnv, "=", first), fmt.Sprint(finalEnv, "=", cases()))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var trouble strings.Builder
	cmd.Stderr = &trouble
	require.NoError(t, cmd.Start())
	end = "crash"
	watchdog := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() }) // a case takes some milliseconds
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		watchdog.Reset(20 * time.Second)
		lines = append(lines, scanner.Text())
	}
	if !watchdog.Stop() {
		end = "hang"
	}
	if err := cmd.Wait(); err != nil {
		t.Logf("the surveyor: %v %.2000s", err, trouble.String())
	}
	return lines, end
}

// table prints the counts.
func table(counts map[string]map[string]int) string {
	var b strings.Builder
	columns := []string{noEffect, reported, failed, lostSilently, "hang", "crash"}
	fmt.Fprintf(&b, "%-28s", "where the bit was")
	for _, c := range columns {
		fmt.Fprintf(&b, "%14s", c)
	}
	places := make([]string, 0, len(counts))
	for where := range counts {
		places = append(places, where)
	}
	slices.Sort(places)
	for _, where := range places {
		fmt.Fprintf(&b, "\n%-28s", where)
		for _, c := range columns {
			fmt.Fprintf(&b, "%14d", counts[where][c])
		}
	}
	return b.String()
}
