package readers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	coder "github.com/coder/websocket"
	gorilla "github.com/gorilla/websocket"
	"github.com/lxzan/gws"

	"github.com/redial-go/redial/conn"
)

// conditions are what client and server have agreed on in the handshake, and whether the client checks UTF-8.
type conditions struct {
	compressed bool // messages are compressed with permessage-deflate
	takeover   bool // a compressed message may refer to the messages before it ("context takeover")
	checkUTF8  bool
}

// limit is the largest message that a client reads.
const limit = 4096

// reading is what a client has read from a stream, and how its connection ended.
type reading struct {
	messages, pongs []string
	ending
	why error
}

func (r reading) String() string {
	return fmt.Sprintf("%d messages, %d pongs, then %v (%v)", len(r.messages), len(r.pongs), r.ending, r.why)
}

// ending is how a connection ends.
type ending struct {
	class string // closed, refused, too big, gone, panic
	code  int    // the code of the server's close frame, if class is "closed"
	said  int    // the code of the client's close frame; 0: the frame had no code; none: the client sent no frame
}

const none = -1

func (e ending) String() string {
	answer := fmt.Sprint("says ", e.said)
	if e.said == none {
		answer = "says nothing"
	}
	if e.class == "closed" {
		return fmt.Sprintf("closed %d, %s", e.code, answer)
	}
	return e.class + ", " + answer
}

// clients are the WebSocket clients that the test compares. The client gorilla does not support context
// takeover, so it does not read the streams that use it: see differs.
var clients = []struct {
	name string
	read func(s *script) reading
}{
	{ours, readOurs}, {"coder", readCoder}, {"gorilla", readGorilla}, {"gws", readGWS},
}

const ours = "conn.WebSocket"

// readAll calls next until it fails or panics, and returns the messages. The function end says what the error means.
func readAll(s *script, next func() (kind int, data []byte, err error), end func(error) ending) (r reading) {
	defer func() {
		r.pongs, r.said = s.said()
		if p := recover(); p != nil {
			r.ending, r.why = ending{class: "panic"}, fmt.Errorf("panic: %v", p)
		}
	}()
	for {
		kind, data, err := next()
		if err != nil {
			r.ending, r.why = end(err), err
			return r
		}
		r.messages = append(r.messages, message(kind, data))
	}
}

func message(kind int, data []byte) string { return fmt.Sprintf("%d %s", kind, data) }

// gone reports whether err means that the server has closed the TCP connection.
func gone(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

func (c conditions) mode() coder.CompressionMode {
	switch {
	case c.takeover:
		return coder.CompressionContextTakeover
	case c.compressed:
		return coder.CompressionNoContextTakeover
	}
	return coder.CompressionDisabled
}

func dialCoder(s *script, transport http.RoundTripper) (*coder.Conn, error) {
	c, _, err := coder.Dial(context.Background(), "ws://test", &coder.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, CompressionMode: s.mode()})
	return c, err
}

func readOurs(s *script) reading {
	var wire conn.Wire
	shake := roundTrip(func(r *http.Request) (*http.Response, error) {
		answer, err := s.RoundTrip(r)
		answer.Body = wire.Tap(s).(io.ReadCloser)
		return answer, err
	})
	ws, err := dialCoder(s, wire.Transport(shake))
	if err != nil {
		return reading{why: err}
	}
	c, err := conn.NewWebSocket(ws, &wire, &conn.WebSocketOptions{Limits: conn.Limits{ReadLimit: limit}, CheckUTF8: s.checkUTF8})
	if err != nil {
		return reading{why: err}
	}
	defer c.CloseNow()
	buf := make([]byte, 0, 512)
	return readAll(s, func() (int, []byte, error) {
		m, err := c.Read(buf)
		return int(m.Type), m.Data, err
	}, func(err error) ending {
		var closed *conn.CloseError
		switch {
		case errors.As(err, &closed):
			return ending{class: "closed", code: closed.Code}
		case errors.As(err, new(*conn.TooBigError)):
			return ending{class: "too big"}
		case errors.As(err, new(*conn.ProtocolError)):
			return ending{class: "refused"}
		case gone(err):
			return ending{class: "gone"}
		}
		return ending{class: "unknown"}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return r(q) }

func readCoder(s *script) reading {
	c, err := dialCoder(s, s)
	if err != nil {
		return reading{why: err}
	}
	c.SetReadLimit(limit)
	r := readAll(s, func() (int, []byte, error) {
		kind, data, err := c.Read(context.Background())
		return int(kind), data, err
	}, func(err error) ending {
		var closed coder.CloseError
		switch {
		case errors.As(err, &closed):
			return ending{class: "closed", code: int(closed.Code)}
		case errors.Is(err, coder.ErrMessageTooBig):
			return ending{class: "too big"}
		case gone(err):
			return ending{class: "gone"}
		}
		return ending{class: "refused"}
	})
	if r.class != "panic" { // after a panic the locks of c are held, and CloseNow would wait for 15 s
		c.CloseNow()
	}
	return r
}

func readGorilla(s *script) reading {
	d := gorilla.Dialer{EnableCompression: s.compressed, NetDialContext: func(context.Context, string, string) (net.Conn, error) { return s, nil }}
	c, _, err := d.Dial("ws://test", nil)
	if err != nil {
		return reading{why: err}
	}
	defer c.Close()
	c.SetReadLimit(limit)
	return readAll(s, c.ReadMessage, func(err error) ending {
		var closed *gorilla.CloseError
		switch {
		case errors.As(err, &closed) && closed.Code == gorilla.CloseAbnormalClosure, gone(err):
			return ending{class: "gone"}
		case errors.As(err, &closed):
			return ending{class: "closed", code: closed.Code}
		case errors.Is(err, gorilla.ErrReadLimit):
			return ending{class: "too big"}
		}
		return ending{class: "refused"}
	})
}

// events are the callbacks of a gws connection.
type events struct {
	gws.BuiltinEventHandler
	message func(kind int, data []byte)
	closed  func(error)
}

func (e *events) OnPing(c *gws.Conn, payload []byte) { _ = c.WritePong(payload) }
func (e *events) OnClose(_ *gws.Conn, err error)     { e.closed(err) }

func (e *events) OnMessage(_ *gws.Conn, m *gws.Message) {
	defer m.Close()
	e.message(int(m.Opcode), m.Bytes())
}

func readGWS(s *script) (r reading) {
	e := &events{
		message: func(kind int, data []byte) { r.messages = append(r.messages, message(kind, data)) },
		closed:  func(err error) { r.why = err },
	}
	c, _, err := gws.NewClientFromConn(e, &gws.ClientOption{Addr: "ws://test", ReadMaxPayloadSize: limit, CheckUtf8Enabled: s.checkUTF8,
		PermessageDeflate: gws.PermessageDeflate{Enabled: s.compressed, ServerContextTakeover: s.takeover, ClientContextTakeover: s.takeover}}, s)
	if err != nil {
		return reading{why: err}
	}
	ends := readAll(s, func() (int, []byte, error) {
		c.ReadLoop()
		return 0, nil, r.why
	}, gwsEnding)
	r.ending, r.pongs, r.why = ends.ending, ends.pongs, ends.why
	if r.class == "closed" && (r.said == 1002 || r.said == 1007) { // gws has refused a close frame, and passes that frame to OnClose
		r.ending = ending{class: "refused", said: r.said}
	}
	return r
}

func gwsEnding(err error) ending {
	var closed *gws.CloseError
	switch {
	case errors.As(err, &closed) && closed.Code == 0: // gws says 0 for a close frame without a code
		return ending{class: "closed", code: 1005}
	case errors.As(err, &closed):
		return ending{class: "closed", code: int(closed.Code)}
	case err.Error() == "gws: message too large":
		return ending{class: "too big"}
	case gone(err):
		return ending{class: "gone"}
	}
	return ending{class: "refused"}
}
