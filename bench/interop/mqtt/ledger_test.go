package mqtt_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	server "github.com/mochi-mqtt/server/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// publisher is an MQTT client whose queue is a Ledger.
type publisher struct {
	ledger *ledger.Ledger
	conn   *reconnect.Conn
	broker *broker

	mu       sync.Mutex // guards random
	random   *rand.Rand
	sessions int // connections that the broker has accepted; only OnSession counts
	present  int // of these, those for which it had the session
}

func newPublisher(t *testing.T, b *broker, seed uint64) *publisher {
	p := &publisher{broker: b, random: rand.New(rand.NewPCG(seed, 2))}
	var err error
	p.ledger, err = ledger.New(&ledger.Options{
		Messages: 100, // less than the 1,024 that this broker allows to be unacknowledged
		Encode: func(e ledger.Entry) (conn.Message, error) {
			return publish(topic, packetID(e.Seq), e.Data, e.Again), nil
		},
	})
	require.NoError(t, err)
	_, err = reconnect.New(&dialer.Framed{Address: "broker.test:1883", Framer: mqttFramer{}, DialContext: p.dial}, &reconnect.Options{
		Layers: []*reconnect.Layer{p.ledger.Layer(), {Start: func(k *reconnect.Conn) error {
			p.conn = k // here, because a message may come before New has returned
			return nil
		}}},
		OnSession: p.login,
		OnMessage: p.receive,
		// This broker neither serves nor closes a connection that it accepts while it ends.
		OpenTimeout: time.Second,
		Run:         reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond, Cap: 10 * time.Millisecond}},
	})
	require.NoError(t, err)
	return p
}

// packetID returns the packet identifier of a number: it is never 0, and no two of 100 messages in a
// row have the same.
func packetID(seq uint64) uint16 { return uint16((seq-1)%65535 + 1) }

// dial makes a connection that will be cut.
func (p *publisher) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, p.broker.at())
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return &cutting{Conn: c, left: p.random.IntN(6000)}, nil
}

func (p *publisher) login(_ context.Context, o *reconnect.Opening) error {
	if err := o.Write(connect("publisher")); err != nil {
		return err
	}
	m, err := o.Read()
	if err != nil {
		return err
	}
	present, err := connack(m.Data)
	if err != nil {
		return err
	}
	if p.sessions++; present {
		p.present++
	}
	return p.ledger.Resume(o, 0, present)
}

func (p *publisher) receive(_ context.Context, m reconnect.Message) {
	id, ok := puback(m.Data)
	if !ok {
		return
	}
	for _, e := range p.ledger.Unacked() {
		if packetID(e.Seq) == id {
			if err := p.ledger.Acked(m.Session, e.Seq); err != nil {
				p.conn.Redial(m.Session, err)
			}
			return
		}
	}
}

// The subscriber gets every message at least once, and the broker takes their first copies in the
// order in which they were added, though connections are cut at random bytes and the broker forgets
// everything now and then. A packet is repeated only by another connection, with DUP, and only if
// the broker has the session.
func TestQoS1IsALedger(t *testing.T) {
	const messages, brokers = 3000, 5
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	b := &broker{t: t, wire: map[*server.Client]*wire{}}
	b.start()
	p := newPublisher(t, b, seed)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for i := range messages {
		_, err := p.ledger.AddWait(ctx, []byte(strconv.Itoa(i)))
		require.NoError(t, err)
		if i%(messages/brokers) == messages/brokers/2 {
			b.stop()
			b.start()
		}
	}
	require.NoError(t, p.ledger.WaitAll(ctx))
	for deadline := time.Now().Add(time.Minute); !b.complete(messages) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // since this broker acknowledges a message before it passes it on
	}
	p.conn.Close()
	<-p.conn.Done()
	b.stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := map[string]bool{}
	for _, text := range b.taken {
		if !seen[text] {
			require.Equal(t, fmt.Sprint(len(seen)), text, "the order of first arrivals")
			seen[text] = true
		}
	}
	for _, text := range b.got {
		delete(seen, text)
	}
	require.Empty(t, seen, "the subscriber has not got them")
	stats := p.ledger.Stats()
	t.Logf("%d connections, %d of them with the session; %d packets with DUP; %d messages came twice; %+v",
		p.sessions, p.present, b.repeated, len(b.got)-messages, stats)
	require.NotZero(t, b.repeated, "the test is of use")
	require.GreaterOrEqual(t, stats.Resets, uint64(brokers))
}
