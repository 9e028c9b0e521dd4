package conn

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Promise 7.
func TestCloseErrorQuotesAndCutsTheReason(t *testing.T) {
	long := &CloseError{Code: 1011, Reason: strings.Repeat("\n", 1000)}
	require.EqualError(t, long, `closed by the peer: 1011 "`+strings.Repeat(`\n`, 123)+`"`)
	require.EqualError(t, &CloseError{Code: 1001}, "closed by the peer: 1001")
	require.EqualError(t, &CloseError{Code: 1005}, "closed by the peer, without a code")
}

// The hint of an advice is a secret of the next dial, and so may the user and the query of its URL be.
func TestCloseErrorHidesWhatTheNextDialIsAdvised(t *testing.T) {
	for reason, want := range map[string]string{
		"redial/1 wait=12s url=wss://u:p@b.example/ws%20x?token=t hint=h later=x": "redial/1 wait=12s " +
			"url=wss://b.example/ws%20x hint=... later=x",
		"redial/1 url=wss://u:%zz@b.example/ hint=": "redial/1 url=... hint=...",
		"redial/2 hint=h": "redial/2 hint=h",
		"hint=h":          "hint=h",
		" ":               " ",
	} {
		e := &CloseError{Code: 1012, Reason: reason}
		require.EqualError(t, e, fmt.Sprintf("closed by the peer: 1012 %q", want))
		require.Equal(t, reason, e.Reason)
	}
}

func TestRedactDecidesWhatACloseErrorShows(t *testing.T) {
	redact := func(reason string) string { return strings.ReplaceAll(reason, "secret", "...") }
	e := newCloseError(4000, "a secret hint=x", redact)
	require.EqualError(t, e, `closed by the peer: 4000 "a ... hint=x"`)
	require.Equal(t, "a secret hint=x", e.Reason)
	require.Equal(t, &CloseError{Code: 4000, Reason: "plain"}, newCloseError(4000, "plain", redact))
	require.Equal(t, &CloseError{Code: 4000, Reason: "secret"}, newCloseError(4000, "secret", nil))
	require.EqualError(t, newCloseError(4000, "secret", func(string) string { return "" }), "closed by the peer: 4000")
	require.EqualError(t, newCloseError(1012, "redial/1 secret hint=x", redact),
		`closed by the peer: 1012 "redial/1 ... hint=..."`)
}

// Promise 7: backoff.Classify looks for these methods.
func TestErrorsOfPeerHaveCloseCode(t *testing.T) {
	type closeCode interface{ CloseCode() int }
	var code closeCode
	require.ErrorAs(t, &lostError{"read", &CloseError{Code: 4000}}, &code)
	require.Equal(t, 4000, code.CloseCode())
	require.ErrorAs(t, &lostError{"read", &ProtocolError{Err: errors.New("x")}}, &code)
	require.Equal(t, 1002, code.CloseCode())
	require.ErrorAs(t, &lostError{"read", &TooBigError{1}}, &code)
	require.Equal(t, 1009, code.CloseCode())
	require.NotErrorAs(t, &lostError{"read", &SlowMessageError{"read", time.Second}}, &code)
	for _, err := range []error{&TooBigError{1}, &SlowMessageError{"read", time.Second}} {
		var timeout net.Error
		require.NotErrorAs(t, err, &timeout)
	}
}

func TestReasonIsCutBetweenRunes(t *testing.T) {
	for _, r := range []string{"x", "é", "€", "😀", "\xffx"} {
		for pad := range 4 {
			got := cutReason(strings.Repeat("x", pad) + strings.Repeat(r, 200))
			require.LessOrEqual(t, len(got), 123)
			require.Greater(t, len(got), 119)
			require.True(t, utf8.ValidString(got))
		}
	}
	require.Equal(t, "fits", cutReason("fits"))
	for n := 122; n <= 124; n++ {
		require.Len(t, cutReason(strings.Repeat("x", n)), min(n, 123))
	}
}
