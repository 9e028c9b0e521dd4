package drain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/drain"
)

var advices = map[string]drain.Advice{
	"redial/1":              {},
	"redial/1 wait=12s":     {Wait: 12 * time.Second},
	"redial/1 spread=1m30s": {Spread: 90 * time.Second},
	"redial/1 url=wss://b.example:8443/x/%20":             {URL: "wss://b.example:8443/x/%20"},
	"redial/1 wait=12s spread=30s url=ws://[::1]:8080/ws": {Wait: 12 * time.Second, Spread: 30 * time.Second, URL: "ws://[::1]:8080/ws"},
	"redial/1 wait=30m0s spread=30m0s":                    {Wait: 30 * time.Minute, Spread: 30 * time.Minute},
	"redial/1 wait=1h0m0s":                                {Wait: time.Hour},
	"redial/1 url=wss://b.example:65535":                  {URL: "wss://b.example:65535"},
	"redial/1 url=ws://b.example:1":                       {URL: "ws://b.example:1"},
}

// refusal returns the error of New for an Advice.
func refusal(a drain.Advice) error {
	_, err := drain.New(&drain.Options{Advice: a})
	return err
}

// wantRead asserts that a client of package reconnect reads an Advice as it was written.
func wantRead(t *testing.T, a drain.Advice) {
	t.Helper()
	got, ok := reconnect.ReadAdvice(a.String())
	require.True(t, ok)
	require.Equal(t, reconnect.Advice{Wait: a.Wait, Spread: a.Spread, URL: a.URL}, got)
}

func TestAnAdviceIsReadAsItWasWritten(t *testing.T) {
	for text, a := range advices {
		require.NoError(t, refusal(a))
		require.Equal(t, text, a.String())
		wantRead(t, a)
	}
}

func TestAnAdviceThatNoClientCouldObeyIsAnError(t *testing.T) {
	for want, a := range map[string]drain.Advice{
		"Wait: -1s is negative":                                                         {Wait: -time.Second},
		"Spread: -1s is negative":                                                       {Spread: -time.Second},
		"Wait and Spread: 59m0s and 2m0s are more than an hour":                         {Wait: 59 * time.Minute, Spread: 2 * time.Minute},
		"Wait and Spread: 2562047h47m16.854775807s and 1ns are more than an hour":       {Wait: 1<<63 - 1, Spread: 1},
		"URL: want ASCII without spaces":                                                {URL: "wss://b.example/ secret"},
		"URL: want one like wss://host:port/path":                                       {URL: "https://b.example/secret"},
		"URL: malformed":                                                                {URL: "wss://b.example:secret"},
		"URL: a user is not allowed":                                                    {URL: "wss://user:secret@b.example"},
		"URL: a query or a fragment is not allowed":                                     {URL: "wss://b.example/?token=secret"},
		"URL: the text of the Advice has 124 bytes, and a close frame has room for 123": {URL: "wss://b.example/" + strings.Repeat("x", 95)},
		"URL: the text of the Advice has 141 bytes, and a close frame has room for 123": {Wait: 10 * time.Second, Spread: time.Millisecond, URL: "wss://b.example/" + strings.Repeat("x", 92)},
	} {
		require.EqualError(t, refusal(a), "drain: Options.Advice."+want)
	}
	for _, host := range []string{"wss://", "wss://:80", "//b.example", "wss:b.example", "wss://b\u00fccher.example", "wss://b.example/#x", "wss://b.example/?", "wss://b.example:65536", "wss://b.example:0"} {
		require.Error(t, refusal(drain.Advice{URL: host}), host)
	}
	require.ErrorContains(t, refusal(drain.Advice{URL: "wss://b.example/\x7f"}), "want ASCII without spaces")
	require.NoError(t, refusal(drain.Advice{URL: "wss://b.example/" + strings.Repeat("x", 94)}))
}

// An Advice that New accepts fits into a close frame, and a client reads the same.
func FuzzAdvice(f *testing.F) {
	for _, a := range advices {
		f.Add(int64(a.Wait), int64(a.Spread), a.URL)
	}
	f.Add(int64(time.Hour), int64(1<<63-1), "wss://%zz")
	f.Add(int64(1), int64(1), "wss://b.example/a\u00a0b")
	f.Fuzz(func(t *testing.T, wait, spread int64, url string) {
		a := drain.Advice{Wait: time.Duration(wait), Spread: time.Duration(spread), URL: url}
		if refusal(a) != nil {
			return
		}
		require.LessOrEqual(t, len(a.String()), 123)
		wantRead(t, a)
	})
}
