package cli

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConditionsSayWhenAndHowBusyItWas(t *testing.T) {
	c := conditionsOf(time.Date(2026, 1, 2, 23, 0, 0, 0, time.FixedZone("", -3600)), 1.5)
	require.Equal(t, "2026-01-03", c.Date, "in UTC")
	require.Contains(t, c.String(), "load average 1.50 before and ")
	require.Contains(t, Conditions{}.String(), "load average unknown before and unknown after")
	if _, err := os.Stat("/proc/loadavg"); err == nil {
		require.Positive(t, loadAverage())
	}
}
