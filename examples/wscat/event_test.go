//go:build !js

package main

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

func TestNumbersThatAreZeroAreThereWhereTheyMeanSomething(t *testing.T) {
	code, wait := 0, seconds(1500*time.Microsecond)
	require.Regexp(t, `^{"time":"[^"]+","event":"end","code":0,"written":0,"dropped":2,"unknown":0}$`, event{Event: "end", Code: &code, tally: &tally{Dropped: 2}}.json())
	require.Regexp(t, `^{"time":"[^"]+","event":"wait","try":2,"wait":0.002,"cause":"<a> & b"}$`, event{Event: "wait", Try: 2, Wait: &wait, Cause: "<a> & b"}.json())
}

func TestATallyNamesWhatWentWrong(t *testing.T) {
	require.Equal(t, "3 written", (&tally{Written: 3}).String())
	require.Equal(t, "0 written, 1 not sent, 2 perhaps sent", (&tally{Dropped: 1, Unknown: 2}).String())
}

// FuzzEvent asserts that an event is one line, safe on a terminal, and has the data as it came.
func FuzzEvent(f *testing.F) {
	f.Add([]byte("hello <>&"), false)
	f.Add([]byte(wild), false)
	f.Add([]byte("\U000E0041 \u007f \u0085 \u2028 \U0001F44D"), false)
	f.Add([]byte{0, 1}, true)
	f.Fuzz(func(t *testing.T, data []byte, binary bool) {
		m := conn.Message{Type: conn.Text, Data: data}
		if binary {
			m.Type = conn.Binary
		}
		e := event{Event: "message"}
		e.setData(m)
		line := e.json()
		for _, r := range line {
			require.True(t, unicode.IsPrint(r), "%+q", r)
		}
		var got event
		require.NoError(t, json.Unmarshal([]byte(line), &got))
		require.Equal(t, binary, got.Binary)
		if got.Text != nil {
			require.Equal(t, string(data), *got.Text)
			return
		}
		decoded, err := base64.StdEncoding.DecodeString(*got.Base64)
		require.NoError(t, err)
		require.Equal(t, string(data), string(decoded))
	})
}

// FuzzForm asserts that a line which stands for a message is written as it was.
func FuzzForm(f *testing.F) {
	f.Add("hello", uint8(0))
	f.Add("00ff", uint8(1))
	f.Add("AAH/", uint8(2))
	f.Fuzz(func(t *testing.T, line string, n uint8) {
		forms := []form{formText, formHex, formBase64}
		as := forms[int(n)%len(forms)]
		m, err := as.message(line)
		if err != nil {
			return
		}
		again, err := as.message(as.line(m))
		require.NoError(t, err)
		require.Equal(t, string(m.Data), string(again.Data))
		require.LessOrEqual(t, len(as.line(m)), as.lineLimit(int64(len(m.Data)))+4)
	})
}

func TestALineThatStandsForNoMessageIsShownAsItIs(t *testing.T) {
	for _, f := range []form{formText, formHex, formBase64} {
		m, err := f.message("ffz\xff")
		require.Error(t, err)
		require.Equal(t, conn.Message{Type: conn.Text, Data: []byte("ffz\xff")}, m)
	}
}

// Only the part of a wait that the server has asked for cannot be cut.
func TestTheEndWaitsForAConnectionUnlessTheServerHasAskedForALongerWait(t *testing.T) {
	require.Equal(t, leaveLimit, leaveTime(nil))
	for after, limit := range map[time.Duration]time.Duration{-time.Hour: leaveLimit, 0: leaveLimit, time.Hour: 0} {
		until := time.Now().Add(after)
		require.Equal(t, limit, leaveTime(&until))
	}
}
