//go:build !js

package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect"
)

// reported returns what goes to standard output and standard error.
func reported(r reporter, play func(r *reporter)) (out, notes string) {
	var o, n strings.Builder
	r.out, r.notes = terminal.NewPlain(&o), terminal.NewPlain(&n)
	r.start(nil)
	play(&r)
	r.close()
	return o.String(), n.String()
}

func TestOnlyAUserWhoTypesSeesThatALineIsKeptOrWritten(t *testing.T) {
	play := func(r *reporter) {
		r.kept("one")
		r.fate(1, "one", conn.Message{}, reconnect.FateWritten, 7, "")
		r.fate(2, "two", conn.Message{}, reconnect.FateUnknown, 7, "reset")
	}
	_, notes := reported(reporter{}, play)
	require.Equal(t, "-- perhaps sent: reset: \"two\"\n", notes)
	_, notes = reported(reporter{typed: true}, play)
	require.Equal(t, "-- kept until there is a connection: \"one\"\n-- written by session 7: \"one\"\n-- perhaps sent: reset: \"two\"\n", notes)
}

func TestAnOutputThatNobodyReadsIsReportedElsewhere(t *testing.T) {
	for _, json := range []bool{false, true} {
		out, notes := reported(reporter{json: json}, (*reporter).unread)
		require.Empty(t, out)
		require.Equal(t, "-- nobody reads standard output, so the connection is not read either\n", notes)
	}
}

func TestWhatIsReportedWithJSONIsOnStandardOutput(t *testing.T) {
	out, notes := reported(reporter{json: true, typed: true}, func(r *reporter) {
		r.kept("one")
		r.hung(reconnect.DialHung{Try: 2, Since: 1500 * time.Millisecond})
		r.fate(1, "one", conn.Message{Data: []byte("one")}, reconnect.FateUnknown, 7, "reset")
		r.leaving(time.Second, 1)
		r.end(codeUnsent, errors.New("unsent"), &tally{Unknown: 1})
	})
	require.Empty(t, notes)
	require.Regexp(t, `^{"time":"[^"]+","event":"hung","try":2,"since":1.5}
{"time":"[^"]+","event":"fate","session":7,"line":1,"fate":"unknown","(text|base64)":"[^"]+",?.*"cause":"reset"}
{"time":"[^"]+","event":"end","cause":"unsent","code":6,"written":0,"dropped":0,"unknown":1}
$`, out)
}
