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

// A server that is not there yet, and net/http. Other clients take DialContext in
// the same way.
func ExampleDialer() {
	reserved, _ := net.Listen("tcp", "127.0.0.1:0")
	address := reserved.Addr().String()
	reserved.Close()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "welcome") })}
	defer server.Close()

	d := &dialer.Dialer{
		Policy:     &backoff.Exponential{Base: time.Millisecond}, // default: from a second
		MaxElapsed: time.Minute,                                  // default: 127 s
		Notify: func(p dialer.Progress) {
			switch {
			case p.Done:
				fmt.Println("back:", p.Err == nil)
			case p.Tries == 1:
				fmt.Println("away:", p.Err != nil)
				l, _ := net.Listen("tcp", address)
				go server.Serve(l) // ends with server.Close
			}
		},
	}
	transport := &http.Transport{DialContext: d.DialContext}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	resp, err := client.Get("http://" + address)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	page, _ := io.ReadAll(resp.Body)
	fmt.Println(string(page))
	// Output:
	// away: true
	// back: true
	// welcome
}

// Any dialer can be made to try again: one for TLS, one through a proxy.
func ExampleDialer_dialOnce() {
	tries := 0
	d := &dialer.Dialer{
		Policy: backoff.Limit(&backoff.Exponential{Base: time.Millisecond}, 2, 0),
		DialOnce: func(ctx context.Context, network, address string) (net.Conn, error) {
			tries++
			return nil, fmt.Errorf("proxy: no way to %s", address)
		},
	}
	_, err := d.Dial("tcp", "redis.example:6379")
	fmt.Println(tries, err != nil)
	// Output: 3 true
}
