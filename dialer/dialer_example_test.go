package dialer_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect/backoff"
)

// DialContext waits for a server that is not there yet, here for net/http. Other clients
// take it in the same way: see Dialer.
func ExampleDialer_DialContext() {
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	address := reserved.Addr().String()
	reserved.Close() // the server is down
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "welcome") })}
	defer server.Close()

	d := &dialer.Dialer{
		Policy:     &backoff.Exponential{Base: time.Millisecond}, // default: from 1 s
		MaxElapsed: time.Minute,                                  // default: 127 s
		OnProgress: func(p dialer.Progress) {
			switch {
			case p.Done:
				fmt.Println("connected:", p.Err == nil)
			case p.Tries == 1:
				fmt.Println("not there:", p.Err != nil)
				l, err := net.Listen("tcp", address)
				if err != nil {
					fmt.Println(err)
					return
				}
				go server.Serve(l) // the server is back; this ends with server.Close
			}
		},
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = d.DialContext
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	resp, err := client.Get("http://" + address)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	fmt.Println(string(page), err)
	// Output:
	// not there: true
	// connected: true
	// welcome <nil>
}

// DialOnce makes any other dialer try again, such as one for TLS or for a proxy.
func ExampleDialer_dialOnce() {
	tries := 0
	d := &dialer.Dialer{
		Policy: backoff.Limit(&backoff.Exponential{Base: time.Millisecond}, 2, 0),
		DialOnce: func(ctx context.Context, network, address string) (net.Conn, error) {
			tries++
			return nil, fmt.Errorf("proxy: no way to %s", address)
		},
	}
	_, err := d.DialContext(context.Background(), "tcp", "redis.example:6379")
	fmt.Println(tries, err != nil)
	// Output: 3 true
}
