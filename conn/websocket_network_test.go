package conn_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

// TLS that a user's own DialContext made spends up to 5 s on its last record.
func TestCloseNowOfAWebSocketOverTheUsersTLSDoesNotWait(t *testing.T) {
	config := serverTLS()
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t, conntest.Deaf)
		v.server.TLS = config
		c, pipe := v.dial(t, nil, secured)
		pipe.Window(conntest.ToServer, 0)
		takes(t, 0, func() { require.NoError(t, c.CloseNow()) })
	})
}
