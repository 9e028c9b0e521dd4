//go:build !js

package main

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// quietJournal returns a journal that prints nothing.
func quietJournal(t *testing.T) *journal {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	j := newJournal(null, newAudit())
	require.NoError(t, null.Close())
	j.printer.lines = make(chan string, 10000) // more than the test writes
	return j
}

func TestATableOfManySessionsShowsTheLatestAndCountsAll(t *testing.T) {
	j := quietJournal(t)
	for n := uint64(1); n <= sessionsKept+20; n++ {
		j.begin(&reconnect.Session{Number: n, Downtime: time.Second})
		j.trace().SessionReady(&reconnect.Session{Number: n})
		j.message(n)
		j.end(reconnect.SessionEnd{Session: n, Cause: errors.New("lost"), Ready: 2 * time.Second})
	}
	j.message(3) // a late message of a session that is not kept
	var out bytes.Buffer
	j.table(&out)
	require.Regexp(t, `(?m)^ +earlier +20s +40s +21 +0 +0 +0 +\(20 sessions\)$`, out.String())
	require.Regexp(t, `(?m)^ +21 +1s +2s +1 +0 +0 +0 +lost$`, out.String())
	require.Regexp(t, `(?m)^ +all +2m0s +4m0s +121 +0 +0 +0 +120 sessions in`, out.String())
	require.Len(t, j.sessions, sessionsKept)
}

func TestTheDowntimeOfASessionThatWasNeverReadyCountsForTheNext(t *testing.T) {
	j := quietJournal(t)
	j.begin(&reconnect.Session{Number: 1, Downtime: time.Second})
	j.end(reconnect.SessionEnd{Session: 1, Cause: errors.New("dropped")})
	j.begin(&reconnect.Session{Number: 2, Downtime: 3 * time.Second})
	j.trace().SessionReady(&reconnect.Session{Number: 2})
	var out bytes.Buffer
	j.table(&out)
	require.Regexp(t, `(?m)^ +1 +- +never .*dropped$`, out.String())
	require.Regexp(t, `(?m)^ +all +3s `, out.String())
}

func TestOnlyEventsSinceTheMarkAreFound(t *testing.T) {
	j := quietJournal(t)
	lost, failed := errors.New("lost"), errors.New("failed")
	j.end(reconnect.SessionEnd{Session: 1, Cause: lost})
	from := j.mark()
	j.trace().DialDone(reconnect.DialDone{Err: failed})
	n, first := j.find(from, func(trouble) bool { return true })
	require.Equal(t, failed, first)
	require.Equal(t, 1, n)
	n, _ = j.find(mark{}, func(trouble) bool { return true })
	require.Equal(t, 2, n)
}
