package dialer

import (
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

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

const (
	upgradeLine    = "Upgrade: websocket"
	connectionLine = "Connection: Upgrade"
	acceptLine     = "Sec-WebSocket-Accept: KEY"
)

func TestABad101IsRefusedAtOnce(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for want, answer := range map[string]conntest.Answer{
		`Sec-WebSocket-Accept does not fit our key: "nope\u202e"`:   switching("", upgradeLine, connectionLine, "Sec-WebSocket-Accept: nope\u202e"),
		`Sec-WebSocket-Accept does not fit our key: ""`:             switching("", upgradeLine, connectionLine),
		`Upgrade does not contain websocket, but ""`:                switching("", connectionLine, acceptLine),
		`Upgrade does not contain websocket, but "h2c"`:             switching("", "Upgrade: h2c", connectionLine, acceptLine),
		`Connection does not contain Upgrade, but ""`:               switching("", upgradeLine, acceptLine),
		`Connection does not contain Upgrade, but "xxx`:             switching("", upgradeLine, "Connection: "+long, acceptLine),
		`Sec-WebSocket-Protocol was not offered: "v3"`:              switching("", upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Protocol: v3"),
		`Sec-WebSocket-Extensions was not offered: "x-gzip"`:        switching("", upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Extensions: x-gzip"),
		`was not offered: "permessage-deflate, permessage-deflate"`: switching("", upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Extensions: permessage-deflate, permessage-deflate"),
		`was not offered: "permessage-deflate; x"`:                  switching("", upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Extensions: permessage-deflate; x"),
		`was not offered: "permessage-deflate;"`:                    switching("", upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Extensions: permessage-deflate;"),
	} {
		t.Run(want, func(t *testing.T) {
			withServer(t, func(t *testing.T, v *wsServer) {
				v.dialer.Compression, v.dialer.Subprotocols = CompressionContextTakeover, []string{"v1", "v2"}
				v.Next(answer)
				e := v.fail(t, t.Context(), 0)
				require.ErrorContains(t, e, "dial ws://server.example/feed: 101 Switching Protocols: ")
				require.ErrorContains(t, e, want)
				require.Equal(t, 101, e.StatusCode)
				require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
				requireNoSecret(t, e)
			})
		})
	}
}

// What was not offered is refused also where it is known.
func TestCompressionThatWasNotOfferedIsRefused(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.Next(switching("", upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Extensions: permessage-deflate"))
		require.ErrorContains(t, v.fail(t, t.Context(), 0), `Sec-WebSocket-Extensions was not offered: "permessage-deflate"`)
	})
}

func TestAGood101MayBeOdd(t *testing.T) {
	for _, lines := range [][]string{
		{"Upgrade: WebSocket, h2c", "Connection: keep-alive , upgrade", acceptLine, "Sec-WebSocket-Protocol: V2"},
		{upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Extensions:", "Content-Length: 5"},
		{upgradeLine, connectionLine, acceptLine, "Sec-WebSocket-Extensions: permessage-deflate ; server_no_context_takeover; client_no_context_takeover;server_max_window_bits=10"},
	} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.dialer.Compression, v.dialer.Subprotocols = CompressionContextTakeover, []string{"v1", "v2"}
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
		v.dialer.MaxHeaderBytes = 300
		large := strings.Repeat("x", 1000)
		v.Next(switching("\x81\x05hello\x82\x7e\x03\xe8"+large+"\x81\x03bye", upgradeLine, connectionLine, acceptLine))
		c := v.dial(t)
		defer c.CloseNow()
		for _, want := range []conn.Message{{Type: conn.Text, Data: []byte("hello")}, {Type: conn.Binary, Data: []byte(large)}, {Type: conn.Text, Data: []byte("bye")}} {
			m, err := c.Read(nil)
			require.NoError(t, err)
			require.Equal(t, want, m)
		}
	})
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
	u := &upgrader{nc: h, limit: 1000}
	_, err = u.RoundTrip(r)
	return u, err
}

func TestAnAnswerCountsThoughTheRequestWasNotRead(t *testing.T) {
	u, err := newHungUp("HTTP/1.1 431 X\r\n\r\n").ask(t)
	require.Equal(t, 431, u.refused.code)
	require.Equal(t, err, u.refused)
	_, err = newHungUp("").ask(t)
	require.ErrorIs(t, err, syscall.EPIPE)
}
