package dialer

import (
	"crypto/sha1"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

// switching answers 101 with these lines of header, in which KEY is the right accept
// key, and what is to follow. Then it waits for the client to hang up.
func switching(behind string, lines ...string) conntest.Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		head := "HTTP/1.1 101 Switching Protocols\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
		head = strings.ReplaceAll(head, "KEY", acceptKey(r.Header.Get("Sec-Websocket-Key")))
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		io.WriteString(c, head+behind)
		io.Copy(io.Discard, c)
		c.Close()
	}
}

// acceptKey returns the right Sec-WebSocket-Accept (RFC 6455, section 4.2.2).
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

const (
	upgradeLine    = "Upgrade: websocket"
	connectionLine = "Connection: Upgrade"
	acceptLine     = "Sec-WebSocket-Accept: KEY"
)

func TestABad101IsRefusedAtOnce(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for want, lines := range map[string][]string{
		`invalid Sec-WebSocket-Accept "nope\u202e"`: {
			upgradeLine, connectionLine, "Sec-WebSocket-Accept: nope\u202e",
		},
		`invalid Sec-WebSocket-Accept ""`:                 {upgradeLine, connectionLine},
		`Upgrade header "" does not contain websocket`:    {connectionLine, acceptLine},
		`Upgrade header "h2c" does not contain websocket`: {"Upgrade: h2c", connectionLine, acceptLine},
		`Connection header "" does not contain Upgrade`:   {upgradeLine, acceptLine},
		`Connection header "xxx`:                          {upgradeLine, "Connection: " + long, acceptLine},
		`unexpected Sec-WebSocket-Protocol from server: "v3"`: {
			upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Protocol: v3",
		},
	} {
		t.Run(want, func(t *testing.T) {
			withServer(t, func(t *testing.T, v *wsServer) {
				v.dialer.Compression, v.dialer.Subprotocols = websocket.CompressionContextTakeover, []string{"v1", "v2"}
				v.Next(switching("", lines...))
				e := v.fail(t, t.Context(), 0)
				require.ErrorContains(t, e, "dial ws://server.example/feed: 101 Switching Protocols: ")
				require.ErrorContains(t, e, want)
				require.NotContains(t, e.Error(), "key")
				require.Equal(t, 101, e.StatusCode)
				require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
				requireNoSecret(t, e)
			})
		})
	}
}

// The error names the option to set, because a server that ignores the offer needs it (RFC 7692, section 7.1).
func TestWrongExtensionNamesOptionToSet(t *testing.T) {
	const deflate = "permessage-deflate; "
	for value, want := range map[string]string{
		"x-gzip":                              `an extension that was not offered: "x-gzip"`,
		deflate + "x":                         `a parameter of permessage-deflate that was not offered: "x"`,
		deflate + "client_max_window_bits=12": `that was not offered: "client_max_window_bits=12"`,
		deflate + "server_max_window_bits=7":  `with an invalid value: "server_max_window_bits=7"`,
		deflate + "client_no_context_takeover; client_no_context_takeover": "a parameter of permessage-deflate " +
			`that comes twice: "client_no_context_takeover"`,
	} {
		t.Run(value, func(t *testing.T) {
			withServer(t, func(t *testing.T, v *wsServer) {
				v.dialer.Compression = websocket.CompressionContextTakeover
				v.Next(switching("", upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Extensions: "+value))
				e := v.fail(t, t.Context(), 0)
				require.ErrorContains(t, e, "dial ws://server.example/feed: 101 Switching Protocols: protocol error: ")
				require.ErrorContains(t, e, want+"; to do without compression "+
					"set WebSocket.Compression to websocket.CompressionDisabled")
				require.Equal(t, 101, e.StatusCode)
				require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
			})
		})
	}
}

// What was not offered is refused also where it is known.
func TestCompressionThatWasNotOfferedIsRefused(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Next(switching("", upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Extensions: permessage-deflate"))
		e := v.fail(t, t.Context(), 0)
		require.ErrorContains(t, e, `an extension that was not offered: "permessage-deflate"`)
		require.NotContains(t, e.Error(), "CompressionDisabled", "it is set")
	})
}

// RFC 6455, section 5.2. The payload is "Hello" (RFC 7692, section 7.2.3.1).
func TestCompressedMessageWithoutAgreementFailsConnection(t *testing.T) {
	for _, mode := range []websocket.CompressionMode{
		websocket.CompressionDisabled, websocket.CompressionContextTakeover,
	} {
		for _, lines := range [][]string{
			{"Sec-WebSocket-Extensions: ,"},
			{"Sec-WebSocket-Extensions: , \t,"},
			{"Sec-WebSocket-Extensions:", "Sec-WebSocket-Extensions:"},
			nil,
		} {
			withServer(t, func(t *testing.T, v *wsServer) {
				v.dialer.Compression = mode
				lines := append([]string{upgradeLine, connectionLine, acceptLine}, lines...)
				v.Next(switching("\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00", lines...))
				c := v.dial(t)
				defer c.CloseNow()
				_, err := c.Read(nil)
				require.EqualError(t, err, "read: protocol error: a reserved bit that is set")
			})
		}
	}
}

func TestAGood101MayBeOdd(t *testing.T) {
	for _, lines := range [][]string{
		{"Upgrade: WebSocket, h2c", "Connection: keep-alive , upgrade", acceptLine, "Sec-WebSocket-Protocol: V2"},
		{upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Extensions:", "Content-Length: 5"},
		{upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Extensions: permessage-deflate ; server_no_context_takeover; client_no_context_takeover;server_max_window_bits=10"},
	} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.dialer.Compression, v.dialer.Subprotocols = websocket.CompressionContextTakeover, []string{"v1", "v2"}
			v.Next(switching("", lines...))
			v.dial(t).CloseNow()
		})
	}
}

func TestInformationalAnswersAreSkipped(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Next(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusProcessing)
			w.WriteHeader(http.StatusEarlyHints)
			v.Accept(w, r)
		})
		c := v.dial(t)
		talk(t, c)
		c.CloseNow()
	})
}

// The first frames may come in the segment of the 101, and more than the header may
// have.
func TestWhatComesWithThe101IsRead(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		large := strings.Repeat("x", 70000)
		v.Next(switching("\x81\x05hello\x82\x7f\x00\x00\x00\x00\x00\x01\x11\x70"+large+"\x81\x03bye", upgradeLine, connectionLine, acceptLine))
		c := v.dial(t)
		defer c.CloseNow()
		for _, want := range []conn.Message{{Type: conn.Text, Data: []byte("hello")}, {Type: conn.Binary, Data: []byte(large)}, {Type: conn.Text, Data: []byte("bye")}} {
			m, err := c.Read(nil)
			require.NoError(t, err)
			require.Equal(t, want, m)
		}
	})
}

// One byte is the least that may come with it.
func TestOneByteWithThe101IsRead(t *testing.T) {
	h := newHungUp("HTTP/1.1 101 Switching Protocols\r\n\r\n\x81")
	u, err := h.ask(t)
	require.NoError(t, err)
	u.body.open = true
	got, err := io.ReadAll(u.body)
	require.NoError(t, err)
	require.Equal(t, "\x81", string(got))
}

// hungUp is a connection whose peer has answered, and hung up before it read.
type hungUp struct {
	net.Conn
	answer io.Reader
}

func (hungUp) Write([]byte) (int, error)     { return 0, syscall.EPIPE }
func (h *hungUp) Read(p []byte) (int, error) { return h.answer.Read(p) }
func newHungUp(answer string) (h *hungUp)    { return &hungUp{answer: strings.NewReader(answer)} }
func (h *hungUp) ask(t *testing.T) (_ *upgrader, err error) {
	r, err := http.NewRequest(http.MethodGet, "http://server.example/", nil)
	require.NoError(t, err)
	u := &upgrader{nc: h}
	_, err = u.RoundTrip(r)
	return u, err
}

func TestAnAnswerCountsThoughTheRequestWasNotRead(t *testing.T) {
	u, err := newHungUp("HTTP/1.1 431 X\r\n\r\n").ask(t)
	require.Equal(t, 431, u.resp.StatusCode)
	require.Equal(t, errRefused, err)
	_, err = newHungUp("").ask(t)
	require.ErrorIs(t, err, syscall.EPIPE)
}
