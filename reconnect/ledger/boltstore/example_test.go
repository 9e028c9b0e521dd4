package boltstore_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	bolt "go.etcd.io/bbolt"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/ledger"
	"github.com/redial-go/redial/reconnect/ledger/boltstore"
)

// encode is ledger.Options.Encode: a message is its number, in 8 bytes, and the data.
func encode(e ledger.Entry) (conn.Message, error) {
	return conn.BinaryMessage(append(binary.BigEndian.AppendUint64(nil, e.Seq), e.Data...)), nil
}

// resume returns an OnSession: the peer first says its epoch, and the number up to which it has
// everything.
func resume(l *ledger.Ledger) func(context.Context, *reconnect.Opening) error {
	return func(_ context.Context, o *reconnect.Opening) error {
		m, err := o.Read()
		if err != nil {
			return err
		}
		var epoch string
		var have uint64
		if _, err := fmt.Sscan(string(m.Data), &epoch, &have); err != nil {
			return err
		}
		return l.ResumeEpoch(o, epoch, have)
	}
}

// bank is a server that adds amounts to a balance. The data of a message is an amount of one byte.
// It cuts the connection after the second amount, which it has booked and not acknowledged.
type bank struct {
	in  *boltstore.Inbox
	cut atomic.Bool
}

var account = []byte("account")

func (k *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	have, err := k.in.Have()
	if err != nil {
		return
	}
	err = c.Write(r.Context(), websocket.MessageText, fmt.Appendf(nil, "%s %d", k.in.Epoch(), have))
	for err == nil {
		var p []byte
		if _, p, err = c.Read(r.Context()); err != nil || len(p) != 9 {
			return
		}
		seq := binary.BigEndian.Uint64(p)
		// The effect and the number are stored in one transaction, so that a message which comes
		// again is not booked again.
		if _, err = k.in.Take(seq, func(tx *bolt.Tx) error { return book(tx, p[8]) }); err != nil {
			return
		}
		if seq == 2 && k.cut.CompareAndSwap(false, true) {
			return
		}
		err = c.Write(r.Context(), websocket.MessageBinary, p[:8])
	}
}

// book adds an amount to the balance.
func book(tx *bolt.Tx, amount byte) error {
	b, err := tx.CreateBucketIfNotExists(account)
	if err != nil {
		return err
	}
	return b.Put(account, []byte{balance(tx) + amount})
}

func balance(tx *bolt.Tx) byte {
	if b := tx.Bucket(account); b != nil {
		if v := b.Get(account); len(v) == 1 {
			return v[0]
		}
	}
	return 0
}

// send books amounts at the bank, and returns when all are acknowledged. What an earlier run has
// left in the store goes first.
func send(url string, store *boltstore.Store, amounts ...byte) error {
	l, err := ledger.New(&ledger.Options{Store: store, Encode: encode})
	if err != nil {
		return err
	}
	for _, amount := range amounts {
		if _, err := l.Add([]byte{amount}); err != nil {
			return err
		}
	}
	c, err := reconnect.New(&dialer.WebSocket{URL: url}, &reconnect.Options{
		Layers:    []*reconnect.Layer{l.Layer()},
		OnSession: resume(l),
		OnMessage: func(_ context.Context, m reconnect.Message) {
			if len(m.Data) == 8 {
				_ = l.AckedTo(m.Session, binary.BigEndian.Uint64(m.Data)) // this bank is right
			}
		},
		Run: reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}}, // so that the example is quick: leave it out
	})
	if err != nil {
		return err
	}
	defer func() {
		c.Close()
		<-c.Done() // before the database is closed
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return l.WaitAll(ctx)
}

// Each message has its effect once, though the connection is lost between an effect and its
// acknowledgement.
func Example() {
	dir, err := os.MkdirTemp("", "bank")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := boltstore.Open(filepath.Join(dir, "both.db"), 0o600, nil) // a real bank has its own
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	in, err := boltstore.NewInbox(db, "incoming")
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := boltstore.Create(db, "outgoing") // New makes the first thing in a database only
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(&bank{in: in})
	defer server.Close()

	fmt.Println(send("ws"+server.URL[len("http"):], store, 10, 20, 30))
	_ = db.View(func(tx *bolt.Tx) error {
		fmt.Println("balance:", balance(tx))
		return nil
	})
	// Output:
	// <nil>
	// balance: 60
}
