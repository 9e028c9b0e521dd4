package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/call"
)

// wire is a question, or the answer with the same id.
type wire struct {
	ID   uint64 `json:"id"`
	Text string `json:"text"`
}

// serveCapitals answers in capitals. It crashes the first time it is asked to.
func serveCapitals() http.HandlerFunc {
	crash := make(chan struct{}, 1) // has room for the one crash
	crash <- struct{}{}
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			var m wire
			if err := wsjson.Read(r.Context(), c, &m); err != nil {
				return
			}
			if strings.HasPrefix(m.Text, "crash") {
				select {
				case <-crash:
					return
				default:
				}
			}
			m.Text = strings.ToUpper(m.Text)
			if err := wsjson.Write(r.Context(), c, m); err != nil {
				return
			}
		}
	}
}

// client asks questions, any number at a time.
type client struct{ questions *call.Client[uint64] }

func newClient(url string) (*client, *reconnect.Conn, error) {
	questions, err := call.New(&call.Options[uint64]{ID: func(m reconnect.Message) (uint64, bool) {
		var answer wire
		err := json.Unmarshal(m.Data, &answer)
		return answer.ID, err == nil && answer.ID != 0
	}})
	if err != nil {
		return nil, nil, err
	}
	c, err := reconnect.New(&dialer.WebSocket{URL: url}, &reconnect.Options{
		Layers:   []*reconnect.Layer{questions.Layer()},
		Inbox:    reconnect.Inbox{Overflow: reconnect.InboxDiscard}, // this server sends nothing but answers
		WhenDown: reconnect.WhenDownWait,
		Run:      reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}}, // so that the example is quick: leave it out
	})
	return &client{questions}, c, err
}

// Ask returns the answer to a question. With again, the question is asked again if the
// connection is lost.
func (c *client) Ask(ctx context.Context, text string, again bool) (string, error) {
	id := c.questions.Next()
	question, err := json.Marshal(wire{id, text})
	if err != nil {
		return "", err
	}
	m, err := c.questions.Do(ctx, call.Request[uint64]{ID: id, Message: conn.TextMessage(string(question)), Repeatable: again})
	if err != nil {
		return "", err
	}
	var answer wire
	err = json.Unmarshal(m.Data, &answer)
	return answer.Text, err
}

// A server that crashes: a question is lost or goes again, as it says itself.
func Example() {
	for _, again := range []bool{false, true} {
		server := httptest.NewServer(serveCapitals())
		client, c, err := newClient("ws" + server.URL[len("http"):])
		if err != nil {
			fmt.Println(err)
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		for _, text := range []string{"hello", "crash", "hello again"} {
			answer, err := client.Ask(ctx, text, again)
			if lost, ok := errors.AsType[*call.LostError](err); ok {
				fmt.Printf("%s: lost with session %d, and the server may have it: %v\n", text, lost.Session, !call.Unsent(err))
				continue
			}
			fmt.Println(answer, err)
		}
		cancel()
		c.Close()
		<-c.Done()
		server.Close()
	}
	// Output:
	// HELLO <nil>
	// crash: lost with session 1, and the server may have it: true
	// HELLO AGAIN <nil>
	// HELLO <nil>
	// CRASH <nil>
	// HELLO AGAIN <nil>
}

// Without a connection a question fails at once by default, and it is safe to ask again.
func ExampleUnsent() {
	questions, err := call.New(&call.Options[uint64]{ID: func(reconnect.Message) (uint64, bool) { return 0, false }})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
		<-ctx.Done() // nobody is there
		return nil, ctx.Err()
	}), &reconnect.Options{Layers: []*reconnect.Layer{questions.Layer()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, err = questions.Do(context.Background(), call.Request[uint64]{ID: questions.Next(), Message: conn.TextMessage("hello")})
	fmt.Println(err)
	fmt.Println(call.Unsent(err))
	// Output:
	// request not sent: no session is ready (connecting)
	// true
}
