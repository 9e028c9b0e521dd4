package reconnect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// callMessage is a question, or the answer with the same id.
type callMessage struct {
	ID   int    `json:"id"`
	Text string `json:"text"`
}

// serveCalls answers in capitals, but crashes when it is asked to.
func serveCalls(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		var m callMessage
		if err := wsjson.Read(r.Context(), c, &m); err != nil || m.Text == "crash" {
			return
		}
		m.Text = strings.ToUpper(m.Text)
		if err := wsjson.Write(r.Context(), c, m); err != nil {
			return
		}
	}
}

// caller asks questions, any number at once, over one connection.
type caller struct {
	conn *reconnect.Conn

	mu    sync.Mutex // guards what follows
	last  int        // the newest id
	calls map[int]call
}

// call is a question without an answer.
type call struct {
	session uint64      // by which it is asked
	answer  chan string // has room for the answer; closed without one when the session is lost
}

var errCallLost = errors.New("the connection was lost before the answer came")

func newCaller(url string) (*caller, error) {
	c := &caller{calls: make(map[int]call)}
	var err error
	c.conn, err = reconnect.New(&dialer.WebSocket{URL: url}, &reconnect.Options{
		OnMessage: c.onMessage,
		OnSeam:    c.onSeam,
		Run:       reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}}, // so that the example is quick: leave it out
	})
	return c, err
}

// Ask returns the answer to a question. It fails at once if the session is lost by which
// it asked: the server may or may not have done what it was asked to do.
func (c *caller) Ask(ctx context.Context, text string) (string, error) {
	session := c.conn.Status().Session
	id, answer := c.begin(session)
	defer c.end(id)
	question, err := json.Marshal(callMessage{ID: id, Text: text})
	if err != nil {
		return "", err
	}
	if err := c.conn.WriteTo(ctx, session, conn.TextMessage(string(question))); err != nil {
		return "", err
	}
	select {
	case text, ok := <-answer:
		if !ok {
			return "", errCallLost
		}
		return text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (c *caller) begin(session uint64) (id int, answer <-chan string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	made := call{session: session, answer: make(chan string, 1)}
	c.calls[c.last] = made
	return c.last, made.answer
}

func (c *caller) end(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// onMessage hands an answer to the call that waits for it. An answer for which nobody
// waits any more is thrown away.
func (c *caller) onMessage(_ context.Context, m reconnect.Message) {
	var answer callMessage
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return // not from a server like this
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if waiting, ok := c.calls[answer.ID]; ok {
		delete(c.calls, answer.ID)
		waiting.answer <- answer.Text
	}
}

// onSeam fails the calls of the session that was lost. A call that begins later with the
// number of that session fails in WriteTo.
func (c *caller) onSeam(_ context.Context, s *reconnect.Seam) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, waiting := range c.calls {
		if waiting.session <= s.Session {
			delete(c.calls, id)
			close(waiting.answer)
		}
	}
}

// Calls: questions and answers with ids, many at a time over one connection.
func Example_calls() {
	server := httptest.NewServer(http.HandlerFunc(serveCalls))
	defer server.Close()
	c, err := newCaller("ws" + server.URL[len("http"):])
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.conn.Close()

	ctx := context.Background()
	for _, text := range []string{"hello", "crash", "hello again"} {
		if err := c.conn.AwaitReady(ctx); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(c.Ask(ctx, text))
	}
	// Output:
	// HELLO <nil>
	//  the connection was lost before the answer came
	// HELLO AGAIN <nil>
}
