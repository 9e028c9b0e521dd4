//go:build linux

package recipes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// telephone is a voice service with one call. It ends each connection after 3 s, and warns when half of that is left.
// The sound moves to the newest connection; the old one stays open. A frame is a number of 160 digits. The service
// notes in files which frames it is about to send, and which it has heard, so that the call survives a kill.
type telephone struct {
	dir  string
	sent *os.File

	mu   sync.Mutex // guards what follows, and the files
	next int        // the number of the next frame
	line *websocket.Conn
	over bool // the caller has hung up
}

const life = 3 * time.Second

func serveTelephone(port string, args []string) error {
	s := &telephone{dir: args[0]}
	s.sent = s.file("sent")
	text, _ := os.ReadFile(s.dir + "/sent")
	for _, b := range text {
		if b == '\n' {
			s.next++
		}
	}
	go s.speak() // ends with the process
	return http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(s.serve))
}

func (s *telephone) file(name string) *os.File {
	f, err := os.OpenFile(s.dir+"/"+name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return f
}

// speak sends a frame every 20 ms, if there is a call.
func (s *telephone) speak() {
	for range time.Tick(20 * time.Millisecond) {
		s.mu.Lock()
		line, n, over := s.line, s.next, s.over
		if line != nil && !over {
			s.next++
			fmt.Fprintf(s.sent, "%d\n", n)
		}
		s.mu.Unlock()
		switch {
		case line == nil:
		case over:
			_ = line.Write(context.Background(), websocket.MessageText, []byte(`{"type":"goodbye"}`))
			return
		default:
			_ = line.Write(context.Background(), websocket.MessageBinary, fmt.Appendf(nil, "%0160d", n))
		}
	}
}

func (s *telephone) serve(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow()
	_, data, err := ws.Read(r.Context())
	var setup struct{ Handle string }
	if err != nil || json.Unmarshal(data, &setup) != nil {
		return
	}
	handle, _ := os.ReadFile(s.dir + "/handle")
	if setup.Handle != "" && setup.Handle != string(handle) {
		ws.Close(4004, "no such call")
		return
	}
	if setup.Handle == "" {
		handle = fmt.Append(nil, time.Now().UnixNano())
		_ = os.WriteFile(s.dir+"/handle", handle, 0o600)
	}
	fmt.Fprintln(s.file("setups"), setup.Handle != "")
	if ws.Write(r.Context(), websocket.MessageText, fmt.Appendf(nil, `{"type":"ready","handle":%q}`, handle)) != nil {
		return
	}
	s.mu.Lock()
	s.line = ws
	s.mu.Unlock()
	warning := time.AfterFunc(life/2, func() {
		_ = ws.Write(context.Background(), websocket.MessageText, fmt.Appendf(nil, `{"type":"goAway","timeLeft":%d}`, (life/2).Milliseconds()))
	})
	defer warning.Stop()
	end := time.AfterFunc(life, func() { ws.Close(websocket.StatusGoingAway, "time is up") })
	defer end.Stop()
	heard := s.file("heard")
	defer heard.Close()
	for {
		kind, data, err := ws.Read(r.Context())
		if err != nil {
			return
		}
		s.mu.Lock()
		if kind == websocket.MessageBinary {
			fmt.Fprintf(heard, "%s\n", data)
		} else {
			s.over = true
		}
		s.mu.Unlock()
	}
}
