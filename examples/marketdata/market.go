//go:build !js

package main

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/venue"
)

// market is a venue on a loopback port, which can be killed and started again.
type market struct {
	*venue.Venue
	addr    string // host:port, the same after a restart
	server  *http.Server
	serving sync.WaitGroup
}

// openMarket opens the port of v. The caller closes the market, and so v.
func openMarket(v *venue.Venue) (*market, error) {
	m := &market{Venue: v, addr: "127.0.0.1:0"}
	return m, m.start()
}

func (m *market) start() error {
	listener, err := net.Listen("tcp", m.addr)
	if err != nil {
		return err
	}
	m.addr = listener.Addr().String()
	mux := http.NewServeMux()
	mux.Handle("/feed", m.Venue)
	mux.HandleFunc("/token", m.Token)
	m.server = &http.Server{Handler: mux}
	m.serving.Go(func() { m.server.Serve(listener) }) // kill waits for it
	return nil
}

// dialer returns a dialer for clients of m, which fetches a token for each dial.
func (m *market) dialer() *dialer.WebSocket {
	addr := m.addr // because start sets it again while a dial is under way
	return &dialer.WebSocket{
		URL:  "ws://" + addr + "/feed",
		Conn: conn.WebSocketOptions{Limits: conn.Limits{ReadLimit: 1 << 20}}, // the default is 16 MiB
		Prepare: func(ctx context.Context, r *dialer.Request) error {
			token, err := venue.FetchToken(ctx, "http://"+addr+"/token")
			r.Header.Set("Authorization", "Bearer "+token)
			return err
		},
	}
}

// kill closes the port and cuts every connection, as the end of a process does.
func (m *market) kill() {
	m.server.Close()
	m.Cut()
	m.serving.Wait()
}

func (m *market) close() {
	m.kill()
	m.Close()
}
