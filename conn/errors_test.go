package conn

import (
	"errors"
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
}
