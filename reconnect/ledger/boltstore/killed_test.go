package boltstore_test

// This file has the two programs that the kill test kills: the test binary is one of them if roleEnv
// is set. Each writes to its standard output what it has done, a line at a time.

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	bolt "go.etcd.io/bbolt"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/ledger"
	"github.com/redial-go/redial/reconnect/ledger/boltstore"
)

const (
	roleEnv = "REDIAL_KILL_ROLE" // "client" or "server"
	dirEnv  = "REDIAL_KILL_DIR"  // where both have their files
	lastEnv = "REDIAL_KILL_LAST" // the client adds no message, and ends when all are acknowledged
)

func exit(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// openFile opens a database of the kill test. The process before, which was killed, holds its lock
// no more.
func openFile(name string) (*bolt.DB, error) {
	return boltstore.Open(filepath.Join(os.Getenv(dirEnv), name), 0o600, &bolt.Options{Timeout: 20 * time.Second})
}

var listBucket = []byte("list")

// runServer keeps a list of what it gets, in the order in which it came.
func runServer() error {
	db, err := openFile("server.db")
	if err != nil {
		return err
	}
	in, err := boltstore.NewInbox(db, "inbox")
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	file := filepath.Join(os.Getenv(dirEnv), "address")
	if err := os.WriteFile(file+".new", []byte(listener.Addr().String()), 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return err
	}
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		if err := receive(r.Context(), c, in); err != nil {
			fmt.Println("error:", err)
		}
	}))
}

// receive serves one connection until it ends. The error is that of the inbox.
func receive(ctx context.Context, c *websocket.Conn, in *boltstore.Inbox) error {
	have, err := in.Have()
	if err != nil {
		return err
	}
	hello := fmt.Appendf(nil, "%s %d", in.Epoch(), have)
	if c.Write(ctx, websocket.MessageText, hello) != nil {
		return nil
	}
	for {
		_, p, err := c.Read(ctx)
		if err != nil {
			return nil
		}
		seq, data := binary.BigEndian.Uint64(p), p[8:]
		seen, err := in.Take(seq, func(tx *bolt.Tx) error {
			list, err := tx.CreateBucketIfNotExists(listBucket)
			if err != nil {
				return err
			}
			n, err := list.NextSequence()
			if err != nil {
				return err
			}
			return list.Put(binary.BigEndian.AppendUint64(nil, n), data)
		})
		if err != nil {
			return err
		}
		fmt.Println("took", seq, seen)
		if c.Write(ctx, websocket.MessageBinary, p[:8]) != nil {
			return nil
		}
	}
}

// payload is the n-th message: its number, and up to 200 bytes more.
func payload(n uint64) []byte {
	return append(fmt.Appendf(nil, "%d ", n), bytes.Repeat([]byte{'x'}, int(n*37%200))...)
}

// reporting is a Store that prints each error of Apply.
type reporting struct{ ledger.Store }

func (s reporting) Apply(c ledger.Change) error {
	err := s.Store.Apply(c)
	if err != nil {
		fmt.Println("error:", err)
	}
	return err
}

// runClient adds messages until it is killed. It goes on after the last that it had added.
func runClient() error {
	db, err := openFile("client.db")
	if err != nil {
		return err
	}
	store, err := boltstore.New(db, "ledger")
	if err != nil {
		return err
	}
	l, err := ledger.New(&ledger.Options{
		Store: reporting{store}, Messages: 32, Encode: encode,
		OnDone: func(r ledger.Settled) {
			if r.Outcome != ledger.OutcomeAcknowledged && r.Outcome != ledger.OutcomeLeft {
				fmt.Println("error: message", r.ID, r.Outcome, r.Err)
			}
		},
	})
	if err != nil {
		return err
	}
	c, err := connect(l)
	if err != nil {
		return err
	}
	defer c.Close()
	if os.Getenv(lastEnv) != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return l.WaitAll(ctx)
	}
	for {
		n := l.LastID() + 1
		id, err := l.AddWait(context.Background(), payload(n))
		if err != nil {
			return err
		}
		fmt.Println("added", id)
	}
}

// connect opens the client's connection.
func connect(l *ledger.Ledger) (*reconnect.Conn, error) {
	var c *reconnect.Conn
	var first sync.Once
	made := make(chan struct{})
	defer close(made)
	var err error
	c, err = reconnect.New(&dialer.WebSocket{
		URL: "ws://server.test/",
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			address, err := os.ReadFile(filepath.Join(os.Getenv(dirEnv), "address"))
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, string(address))
		},
	}, &reconnect.Options{
		Layers: []*reconnect.Layer{l.Layer()},
		OnSession: func(ctx context.Context, o *reconnect.Opening) error {
			err := resume(l)(ctx, o)
			if seq, wrong := errors.AsType[*ledger.SeqError](err); wrong {
				fmt.Println("error:", seq)
			}
			return err
		},
		OnMessage: func(_ context.Context, m reconnect.Message) {
			if err := l.AckedTo(m.Session, binary.BigEndian.Uint64(m.Data)); err != nil {
				fmt.Println("error:", err)
				<-made
				c.Redial(m.Session, err)
			}
			first.Do(func() { fmt.Println("acknowledged") })
		},
		Run: reconnect.RunOptions{Policy: &backoff.Exponential{Base: 2 * time.Millisecond, Cap: 20 * time.Millisecond}},
	})
	return c, err
}

// isError reports whether a line of a program says that something is wrong.
func isError(line string) bool {
	return strings.HasPrefix(line, "error:") || strings.HasPrefix(line, "panic") || strings.HasPrefix(line, "fatal")
}
