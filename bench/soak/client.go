package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
	"github.com/redial-go/redial/reconnect/ledger"
	"github.com/redial-go/redial/reconnect/subscription"
)

// counts are what the clients have done together.
type counts struct {
	ticks, answers, lost, added, acknowledged, seams atomic.Uint64

	mu    sync.Mutex
	wrong []string // what must not happen; the first few
	more  int      // how often it did
}

// mistake notes what must not happen.
func (n *counts) mistake(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.more++; len(n.wrong) < 10 {
		n.wrong = append(n.wrong, fmt.Sprintf(format, args...))
	}
}

// client is a connection, and what lives on it.
type client struct {
	name      string
	n         *counts
	conn      *reconnect.Conn
	keys      *subscription.Set[string]
	questions *call.Client[uint64]
	posts     *ledger.Ledger
}

// parse reads a message. A message that cannot be read has no op.
func parse(m conn.Message) (v message) {
	_ = json.Unmarshal(m.Data, &v)
	return v
}

// newClient opens a connection in the background.
func newClient(address string, i int, n *counts) (*client, error) {
	c := &client{name: fmt.Sprint("c", i), n: n}
	var err error
	c.keys, err = subscription.New(&subscription.Options[string]{
		Encode: func(r *subscription.Request[string]) (conn.Message, error) {
			return conn.JSONMessage(message{Op: r.Op.String(), ID: r.ID, Keys: r.Keys})
		},
		Answer: func(m reconnect.Message) (subscription.Answer[string], bool) {
			v := parse(m.Message)
			return subscription.Answer[string]{ID: v.ID}, v.Op == opAgreed
		},
	})
	if err != nil {
		return nil, err
	}
	c.questions, err = call.New(&call.Options[uint64]{ID: func(m reconnect.Message) (uint64, bool) {
		v := parse(m.Message)
		return v.N, v.Op == opAnswer
	}})
	if err != nil {
		return nil, err
	}
	c.posts, err = ledger.New(&ledger.Options{
		Encode: func(e ledger.Entry) (conn.Message, error) { return conn.JSONMessage(message{Op: opPost, N: e.Seq}) },
		Ack: func(m reconnect.Message) (uint64, bool) {
			v := parse(m.Message)
			return v.N, v.Op == opAck
		},
		OnDone: func(s ledger.Settled) {
			if s.Outcome != ledger.OutcomeAcknowledged {
				c.n.mistake("%s: post %d: %v", c.name, s.Seq, s.Outcome)
			}
			c.n.acknowledged.Add(1)
		},
	})
	if err != nil {
		return nil, err
	}
	c.keys.Add(c.name+"a", c.name+"b")
	c.conn, err = reconnect.New(&dialer.WebSocket{URL: "ws://" + address + "/?client=" + c.name}, &reconnect.Options{
		OnSession: func(_ context.Context, o *reconnect.Opening) error {
			m, err := o.Read()
			if err != nil {
				return err
			}
			return c.posts.Resume(o, parse(m).N, true)
		},
		Layers:   []*reconnect.Layer{c.keys.Layer(), c.questions.Layer(), c.posts.Layer()},
		Liveness: reconnect.Liveness{Limit: 12 * time.Second}, // so that many are silent for longer
	})
	return c, err
}

// live reads, asks and posts until ctx ends, and then ends the connection, when each post has its
// acknowledgement.
func (c *client) live(ctx context.Context, r *rand.Rand) {
	var work sync.WaitGroup
	work.Go(func() { c.read() })
	work.Go(func() { c.talk(ctx, r) })
	<-ctx.Done()
	late, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.posts.WaitAll(late); err != nil {
		c.n.mistake("%s: wait for the last posts: %v", c.name, err)
	}
	c.conn.Close()
	<-c.conn.Done()
	work.Wait()
}

// read counts the ticks of each session.
func (c *client) read() {
	ticks := map[string]uint64{}
	for m, err := range c.conn.Messages(context.Background()) {
		if _, lost := errors.AsType[*reconnect.Seam](err); lost {
			c.n.seams.Add(1)
			clear(ticks)
			continue
		} else if err != nil {
			return
		}
		v := parse(m.Message)
		if v.Op != opTick || len(v.Keys) != 1 {
			c.n.mistake("%s: %s for the reader", c.name, m.Data)
			continue
		}
		c.n.ticks.Add(1)
		if ticks[v.Keys[0]]++; v.N != ticks[v.Keys[0]] {
			c.n.mistake("%s: tick %d of %s, after %d", c.name, v.N, v.Keys[0], ticks[v.Keys[0]]-1)
			ticks[v.Keys[0]] = v.N
		}
	}
}

// talk posts and asks, one after the other.
func (c *client) talk(ctx context.Context, r *rand.Rand) {
	for sleep(ctx, time.Duration((1+2*r.Float64())*float64(2*time.Second))) {
		if _, err := c.posts.Add(nil); err != nil {
			c.n.mistake("%s: post: %v", c.name, err)
		}
		c.n.added.Add(1)
		id := c.questions.Next()
		question, _ := conn.JSONMessage(message{Op: opAsk, N: id}) // a message of ours can be encoded
		limit, cancel := context.WithTimeout(ctx, 30*time.Second)
		answer, err := c.questions.Do(limit, call.Request[uint64]{ID: id, Message: question})
		cancel()
		switch {
		case err != nil:
			c.n.lost.Add(1)
		case parse(answer.Message).N != id:
			c.n.mistake("%s: %s for question %d", c.name, answer.Data, id)
		default:
			c.n.answers.Add(1)
		}
	}
}
