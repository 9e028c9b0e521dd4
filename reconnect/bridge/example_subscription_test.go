package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
	"github.com/redial-go/redial/reconnect/subscription"
)

// subscribe is a request, and the answer to it.
type subscribe struct {
	ID    string   `json:"id"`
	Rooms []string `json:"rooms,omitempty"`
}

// spoken is what was said in each room before anybody subscribed to it.
var spoken = map[string]string{"gophers": "good morning", "crabs": "good evening"}

// serveRooms answers each request, and then sends the second line of the room.
func serveRooms(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		var q subscribe
		if wsjson.Read(r.Context(), c, &q) != nil {
			return // the client has closed
		}
		_ = wsjson.Write(r.Context(), c, subscribe{ID: q.ID})
		_ = wsjson.Write(r.Context(), c, line{q.Rooms[0], 2, "hello"})
	}
}

// A Bridge for the keys of a subscription.Set. A session is ready before the Set holds its keys, so the
// streams are fetched at the mark, which comes when it does. A key that is added later is fetched by
// Refetch when the Set holds it.
func ExampleBridge_subscription() {
	server := httptest.NewServer(http.HandlerFunc(serveRooms))
	defer server.Close()

	set, err := subscription.New(&subscription.Options[string]{
		Batch: 1,
		Encode: func(r *subscription.Request[string]) (conn.Message, error) {
			return conn.JSONMessage(subscribe{r.ID, r.Keys})
		},
		Answer: func(m reconnect.Message) (a subscription.Answer[string], ok bool) {
			var v subscribe
			err := json.Unmarshal(m.Data, &v)
			a.ID = v.ID
			return a, err == nil && v.ID != ""
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := bridge.New(&bridge.Options[string, line]{
		Parse: func(m reconnect.Message) (bridge.Item[string, line], bool) {
			var l line
			err := json.Unmarshal(m.Data, &l)
			return bridge.Item[string, line]{Key: l.Room, Last: l.Number, Value: l}, err == nil && l.Room != ""
		},
		Past: func(_ context.Context, r bridge.Request[string]) (page []bridge.Item[string, line], err error) {
			if r.After.Offset == 0 {
				page = append(page, bridge.Item[string, line]{Last: 1, Value: line{r.Key, 1, spoken[r.Key]}})
			}
			return page, nil
		},
		Wanted:          func(room string) bool { return set.State(room) != subscription.StateNone },
		AwaitSubscribed: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	feed, err := reconnect.New(&dialer.WebSocket{URL: "ws" + server.URL[len("http"):]}, &reconnect.Options{
		Layers:      []*reconnect.Layer{set.Layer()},
		MarkRefetch: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer feed.Close()

	set.Add("gophers")
	if err := b.Follow("gophers", bridge.Cursor{}); err != nil { // from its beginning
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for e, err := range b.Events(ctx, feed) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if e.Kind != bridge.EventLive && e.Kind != bridge.EventPast {
			continue
		}
		fmt.Println(e.Key, e.Value.Number, e.Value.Text)
		if e.Last < 2 {
			continue
		}
		if e.Key == "crabs" {
			break
		}
		set.Add("crabs")
		if err := set.Wait(ctx, "crabs"); err != nil {
			fmt.Println(err)
			return
		}
		b.Refetch("crabs", 0) // the session holds its subscription from here on
	}
	// Output:
	// gophers 1 good morning
	// gophers 2 hello
	// crabs 1 good evening
	// crabs 2 hello
}
