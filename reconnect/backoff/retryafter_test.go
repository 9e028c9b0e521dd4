package backoff_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

func TestParseRetryAfterReadsEachForm(t *testing.T) {
	now := time.Date(1994, 11, 6, 8, 49, 7, 250e6, time.UTC) // 784111747.25
	for value, want := range map[string]time.Duration{
		"120":                            2 * time.Minute,
		" 7 ":                            7 * time.Second,
		"0":                              0,
		"0.5":                            500 * time.Millisecond,
		"-3":                             0,
		"4000":                           time.Hour,
		"499999999":                      time.Hour,
		"784111777":                      29750 * time.Millisecond,
		"784111777.5":                    30250 * time.Millisecond,
		"784111777000":                   29750 * time.Millisecond,
		"784111700":                      0,
		"99999999999999999999999":        time.Hour,
		strings.Repeat("9", 400):         time.Hour,
		"1.001":                          1001 * time.Millisecond,
		"Sun, 06 Nov 1994 08:49:37 GMT":  29750 * time.Millisecond,
		"Sunday, 06-Nov-94 08:49:37 GMT": 29750 * time.Millisecond,
		"Sun Nov  6 08:49:37 1994":       29750 * time.Millisecond,
		"Sun, 06 Nov 1994 08:49:07 GMT":  0,
		"Sun, 06 Nov 2094 08:49:07 GMT":  time.Hour,
	} {
		got, ok := backoff.ParseRetryAfter(value, now)
		require.True(t, ok, value)
		require.Equal(t, want, got, value)
	}
}

func TestParseRetryAfterRefusesGarbage(t *testing.T) {
	for _, value := range []string{"", " ", "soon", "-", ".", "1.2.3", "1-2", "1e3", "0x10", "inf", "NaN", "1_000", "7s", "Sun, 06 Nov 1994", "٣"} {
		got, ok := backoff.ParseRetryAfter(value, start)
		require.False(t, ok, "%q", value)
		require.Zero(t, got)
	}
}

// In a synctest bubble it is the year 2000. A Unix time of that year must count as one.
func TestParseRetryAfterKnowsAUnixTimeInABubble(t *testing.T) {
	got, _ := backoff.ParseRetryAfter("946684830", time.Unix(946684800, 0))
	require.Equal(t, 30*time.Second, got)
}

// From 5e8 on a number is a Unix time, and from 5e11 on one in milliseconds.
func TestParseRetryAfterTellsUnixTimesBySize(t *testing.T) {
	now := time.Unix(5e8-10, 0)
	for value, want := range map[string]time.Duration{
		"499999999":    time.Hour, // seconds
		"500000000":    10 * time.Second,
		"499999999999": time.Hour, // a Unix time, far in the future
		"500000000000": 10 * time.Second,
	} {
		got, ok := backoff.ParseRetryAfter(value, now)
		require.True(t, ok, value)
		require.Equal(t, want, got, value)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	f.Add("120", int64(0))
	f.Add("Sun, 06 Nov 1994 08:49:37 GMT", int64(784111747))
	f.Fuzz(func(t *testing.T, value string, now int64) {
		got, ok := backoff.ParseRetryAfter(value, time.Unix(now, 0))
		if got < 0 || got > backoff.MaxRetryAfter || !ok && got != 0 {
			t.Fatalf("%q at %d: %v, %v", value, now, got, ok)
		}
	})
}
