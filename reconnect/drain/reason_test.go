package drain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/drain"
)

var reasons = map[string]drain.Reason{
	"redial/1":              {},
	"redial/1 wait=12s":     {Wait: 12 * time.Second},
	"redial/1 spread=1m30s": {Spread: 90 * time.Second},
	"redial/1 url=wss://b.example:8443/x/%20":             {URL: "wss://b.example:8443/x/%20"},
	"redial/1 wait=12s spread=30s url=ws://[::1]:8080/ws": {Wait: 12 * time.Second, Spread: 30 * time.Second, URL: "ws://[::1]:8080/ws"},
	"redial/1 wait=30m0s spread=30m0s":                    {Wait: 30 * time.Minute, Spread: 30 * time.Minute},
}

// Both clients understand what is written: ours and the function for others.
func TestAReasonIsReadAsItWasWritten(t *testing.T) {
	for text, r := range reasons {
		require.NoError(t, r.Validate())
		require.Equal(t, text, r.String())
		read, ok := drain.ParseReason(text)
		require.True(t, ok)
		require.Equal(t, r, read)
		a, ok := reconnect.ReadAdvice(1012, text)
		require.True(t, ok)
		require.Equal(t, reconnect.Advice{Wait: r.Wait, Spread: r.Spread, URL: r.URL}, a)
	}
}

func TestAReasonThatNoClientCouldObeyIsAnError(t *testing.T) {
	for want, r := range map[string]drain.Reason{
		"Wait: -1s is negative":                                                   {Wait: -time.Second},
		"Spread: -1s is negative":                                                 {Spread: -time.Second},
		"Wait and Spread: 59m0s and 2m0s are more than an hour":                   {Wait: 59 * time.Minute, Spread: 2 * time.Minute},
		"Wait and Spread: 2562047h47m16.854775807s and 1ns are more than an hour": {Wait: 1<<63 - 1, Spread: 1},
		"URL: want ASCII without spaces":                                          {URL: "wss://b.example/ secret"},
		"URL: want one like wss://host:port/path":                                 {URL: "https://b.example/secret"},
		"URL: malformed":                                                          {URL: "wss://b.example:secret"},
		"URL: a user has no place there":                                          {URL: "wss://user:secret@b.example"},
		"URL: a query or a fragment has no place there":                           {URL: "wss://b.example/?token=secret"},
		"URL: the reason has 124 bytes, and a close frame has room for 123":       {URL: "wss://b.example/" + strings.Repeat("x", 95)},
		"URL: the reason has 141 bytes, and a close frame has room for 123":       {Wait: 10 * time.Second, Spread: time.Millisecond, URL: "wss://b.example/" + strings.Repeat("x", 92)},
	} {
		require.EqualError(t, r.Validate(), want)
	}
	for _, host := range []string{"wss://", "wss://:80", "//b.example", "wss:b.example", "wss://b\u00fccher.example", "wss://b.example/#x", "wss://b.example/?", "wss://b.example:65536", "wss://b.example:0"} {
		require.Error(t, drain.Reason{URL: host}.Validate(), host)
	}
	require.NoError(t, drain.Reason{URL: "wss://b.example/" + strings.Repeat("x", 94)}.Validate())
}

// A client must not do more than it has to because of what somebody else wrote.
func TestWhatCannotBeReadIsIgnored(t *testing.T) {
	for text, want := range map[string]drain.Reason{
		"redial/1 wait=-5s spread=soon url=https://b.example": {},
		"redial/1 wait=5s later=1s hint=x =":                  {Wait: 5 * time.Second},
		"redial/1 wait=2h spread=2h":                          {Wait: time.Hour},
		"redial/1 wait=50m spread=2h":                         {Wait: 50 * time.Minute, Spread: 10 * time.Minute},
		"redial/1 url=wss://u:p@b.example":                    {},
	} {
		got, ok := drain.ParseReason(text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "redial", "redial/2 wait=1s", "going away", "wait=12s redial/1"} {
		_, ok := drain.ParseReason(text)
		require.False(t, ok, text)
	}
}

// What was read can be written and read again, and ours reads the same.
func FuzzReason(f *testing.F) {
	for text := range reasons {
		f.Add(text)
	}
	f.Add("redial/1 wait=9223372036s spread=9223372036s url=wss://%zz")
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := drain.ParseReason(text)
		a, ours := reconnect.ReadAdvice(1012, text)
		require.Equal(t, ours, ok)
		if !ok {
			return
		}
		require.LessOrEqual(t, r.Wait, a.Wait)
		require.LessOrEqual(t, r.Spread, a.Spread)
		if r.URL != "" {
			require.Equal(t, a.URL, r.URL)
		}
		require.LessOrEqual(t, r.Wait+r.Spread, time.Hour)
		if len(r.String()) <= 123 {
			require.NoError(t, r.Validate())
		}
		again, ok := drain.ParseReason(r.String())
		require.True(t, ok)
		require.Equal(t, r, again)
	})
}
