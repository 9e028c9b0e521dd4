package ledger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/ledger"
)

// order is what the shop gets, and its answer: a hello with an epoch, or an acknowledgement.
type order struct {
	Epoch string `json:"epoch,omitempty"`
	Seq   uint64 `json:"seq"`
	Item  string `json:"item,omitempty"`
}

// shop is the server. It cuts the connection when it has got the second order, before it could
// acknowledge it.
type shop struct {
	mu     sync.Mutex
	have   uint64
	orders []string
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	s.mu.Lock()
	hello := order{Epoch: "today", Seq: s.have}
	s.mu.Unlock()
	for err := wsjson.Write(r.Context(), c, hello); err == nil; {
		var o order
		if err = wsjson.Read(r.Context(), c, &o); err != nil {
			return
		}
		if s.take(o); o.Seq == 2 && hello.Seq == 0 {
			return
		}
		err = wsjson.Write(r.Context(), c, order{Seq: o.Seq})
	}
}

// take takes an order once.
func (s *shop) take(o order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Seq == s.have+1 {
		s.have++
		s.orders = append(s.orders, fmt.Sprintf("%d %s", o.Seq, o.Item))
	}
}

// A connection is lost with messages that are not acknowledged. What the server lacks is sent again,
// and only that.
func ExampleLedger() {
	server := &shop{}
	listening := httptest.NewServer(server)
	defer listening.Close()

	orders, err := ledger.New(&ledger.Options{
		Encode: func(e ledger.Entry) (conn.Message, error) {
			data, err := json.Marshal(order{Seq: e.Seq, Item: string(e.Data)})
			return conn.Message{Type: conn.Text, Data: data}, err
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := reconnect.New(&dialer.WebSocket{URL: "ws" + listening.URL[len("http"):]}, &reconnect.Options{
		Layers: []*reconnect.Layer{orders.Layer()},
		OnSession: func(_ context.Context, o *reconnect.Opening) error {
			m, err := o.Read()
			if err != nil {
				return err
			}
			var hello order
			if err := json.Unmarshal(m.Data, &hello); err != nil {
				return err
			}
			fmt.Println("session", o.Session, "the shop has", hello.Seq)
			return orders.ResumeEpoch(o, hello.Epoch, hello.Seq)
		},
		OnMessage: func(_ context.Context, m reconnect.Message) {
			var ack order
			if err := json.Unmarshal(m.Data, &ack); err != nil {
				return
			}
			if err := orders.AckedTo(m.Session, ack.Seq); err != nil {
				fmt.Println(err) // the shop is broken
			}
		},
		Run: reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}}, // so that the example is quick: leave it out
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	for _, item := range []string{"tea", "milk", "sugar"} {
		if _, err := orders.Add([]byte(item)); err != nil {
			fmt.Println("not accepted:", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := orders.WaitAll(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Shutdown(ctx))
	server.mu.Lock()
	defer server.mu.Unlock()
	fmt.Println(server.orders)
	// Output:
	// session 1 the shop has 0
	// session 2 the shop has 2
	// <nil>
	// [1 tea 2 milk 3 sugar]
}
