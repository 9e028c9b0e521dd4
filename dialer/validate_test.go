package dialer

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestValidateNamesTheOption(t *testing.T) {
	const good = "wss://host/path?q=1"
	dial := func(string, string) (net.Conn, error) { return nil, nil }
	for want, d := range map[string]*WebSocket{
		"URL: missing":       {},
		"URL: malformed URL": {URL: "wss://user:passwd@host:port/"},
		"URL: scheme must be ws or wss, not https":                         {URL: "https://host"},
		"URL: scheme must be ws or wss":                                    {URL: "passwd:x"},
		"URL: a WebSocket URL has no fragment":                             {URL: good + "#"},
		"URL: no host":                                                     {URL: "ws://:80/"},
		"URL: malformed host":                                              {URL: `ws://a"b/`},
		"URL: port must be 1 to 65535":                                     {URL: "ws://host:65536"},
		"URL and URLs: want one of them":                                   {URL: good, URLs: []string{good}},
		"URLs[1]: scheme must be ws or wss":                                {URLs: []string{good, ""}},
		"Header: X: a value has a line break or another control character": {URL: good, Header: http.Header{"X": {"passwd\r\nY: z"}}},
		`Header: "X Y" is no name of a header`:                             {URL: good, Header: http.Header{"X Y": {""}}},
		"Header: Sec-Websocket-Extensions is set by the handshake":         {URL: good, Header: http.Header{"Sec-Websocket-Extensions": {"x"}}},
		"Header: Host: want one host, by that name":                        {URL: good, Header: http.Header{"Host": {"a/b"}}},
		`Subprotocols[1]: "a" is no token, or there twice`:                 {URL: good, Subprotocols: []string{"a", "a"}},
		`Subprotocols[0]: "a b" is no token, or there twice`:               {URL: good, Subprotocols: []string{"a b"}},
		"Compression: 3 is no mode":                                        {URL: good, Compression: 3},
		//lint:ignore SA1019 it is refused
		"Transport: Dial, DialTLS and DialTLSContext are not used":                    {URL: good, Transport: &http.Transport{DialTLS: dial}},
		"ConnectTimeout: -1ns is negative":                                            {URL: good, ConnectTimeout: -1},
		"HandshakeTimeout: -1ns is negative":                                          {URL: good, HandshakeTimeout: -1},
		"MaxHeaderBytes: -1 is negative":                                              {URL: good, MaxHeaderBytes: -1},
		"Conn: conn: option ReadLimit is -1":                                          {URL: good, Conn: conn.WebSocketOptions{ReadLimit: -1}},
		"TCP.UserTimeout: 2s is less than KeepAlive.Idle + 2 KeepAlive.Interval (3s)": {URL: good, TCP: TCPOptions{UserTimeout: 2 * time.Second}},
	} {
		t.Run(want, func(t *testing.T) {
			err := d.Validate()
			require.ErrorContains(t, err, "dialer: WebSocket."+want)
			require.NotContains(t, err.Error(), "passwd")
			_, dialErr := d.Dial(context.Background())
			require.Equal(t, err, dialErr)
			require.Equal(t, backoff.ClassStop, backoff.Classify(err).Class)
			require.Empty(t, d.Host())
		})
	}
}

func TestHostIsTheSameForTheSameEndpoints(t *testing.T) {
	for want, d := range map[string]*WebSocket{
		"host:443":      {URL: "wss://u:p@HOST/path?q"},
		"host:80":       {URL: "ws://host"},
		"[::1]:8080":    {URL: "ws://[::1]:8080"},
		"a:443,b:80":    {URLs: []string{"ws://b", "wss://a/x"}},
		"a:443,b:80 2":  {URLs: []string{"wss://a/x", "ws://b", "ws://b/y"}},
		"bücher.de:443": {URL: "wss://bücher.de/"},
	} {
		require.NoError(t, d.Validate())
		require.Contains(t, want, d.Host())
	}
}
