package receive_test

// This file tests conn.Split under a Conn: OnSession, layers and reader get the parts of a frame.

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
	"github.com/redial-go/redial/reconnect/subscription"
)

// framesOfParts is a server that sends a login and two messages in one frame, and answers a subscription
// and a question in one frame, between messages.
func framesOfParts(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	_ = c.Write(r.Context(), websocket.MessageText, []byte("welcome\nfeed 1\nfeed 2\n"))
	answers := "feed 3\n"
	for range 2 {
		_, question, err := c.Read(r.Context())
		if err != nil {
			return
		}
		answers += "answer " + string(question) + "\nfeed\n"
	}
	_ = c.Write(r.Context(), websocket.MessageText, []byte(answers+"feed 4"))
	_ = c.Write(r.Context(), websocket.MessageText, []byte("end"))
	_, _, _ = c.Read(r.Context())
}

func TestOnSessionLayersAndReaderSeeThePartsOfAFrame(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(framesOfParts))
	defer server.Close()
	for _, push := range []bool{false, true} {
		set, err := subscription.New(&subscription.Options[string]{
			Encode: func(r *subscription.Request[string]) (conn.Message, error) {
				return scene.Text("key " + r.Keys[0]), nil
			},
			Answer: func(m reconnect.Message) (a subscription.Answer[string], ok bool) {
				key, ok := strings.CutPrefix(string(m.Data), "answer key ")
				return subscription.Answer[string]{Keys: []string{key}}, ok
			},
		})
		require.NoError(t, err)
		set.Add("A")
		questions, err := call.New(&call.Options[string]{ID: func(m reconnect.Message) (string, bool) {
			return strings.CutPrefix(string(m.Data), "answer ")
		}})
		require.NoError(t, err)
		var seen []string // by the last layer
		got, ended := []string{}, make(chan struct{})
		read := func(m reconnect.Message) {
			if string(m.Data) == "end" {
				close(ended)
				return
			}
			got = append(got, fmt.Sprintf("%d %s", m.Session, m.Data))
		}
		o := &reconnect.Options{
			OnSession: func(_ context.Context, o *reconnect.Opening) error {
				m, err := o.Read()
				if err == nil && string(m.Data) != "welcome" {
					return fmt.Errorf("%q is no welcome", m.Data)
				}
				return err
			},
			Layers: []*reconnect.Layer{set.Layer(), questions.Layer(), {Receive: func(m reconnect.Message) bool {
				seen = append(seen, string(m.Data))
				return false
			}}},
		}
		if push {
			o.OnMessage = func(_ context.Context, m reconnect.Message) { read(m) }
		}
		c, err := reconnect.New(&dialer.WebSocket{URL: "ws" + server.URL[len("http"):], Split: conn.Split{Func: bufio.ScanLines}}, o)
		require.NoError(t, err)
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		answered := make(chan error, 1)
		go func() {
			m, err := questions.Do(t.Context(), call.Request[string]{ID: "7", Message: scene.Text("7")})
			if err == nil && string(m.Data) != "answer 7" {
				err = fmt.Errorf("%q", m.Data)
			}
			answered <- err
		}()
		for range 7 {
			if push {
				break
			}
			m, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
			read(m)
		}
		<-ended
		require.NoError(t, <-answered)
		require.NoError(t, set.Wait(t.Context(), "A"))
		require.Equal(t, []string{"1 feed 1", "1 feed 2", "1 feed 3", "1 feed", "1 feed", "1 feed 4"}, got)
		require.Len(t, seen, len(got)+1)
		scene.CloseAndWait(c)
	}
}
