//go:build linux

package recipes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// fleet is the server of the agents. Its log has what has happened, also before it was killed: "dial", "login NAME",
// "refused NAME" and "result NAME ID TEXT". A token is the name of an agent and the secret, which is in a file.
type fleet struct {
	dir string
	log *os.File

	mu   sync.Mutex // guards what follows
	done map[string]uint64
}

const commands = 30 // that each agent gets

// order is a message, to an agent or from it.
type order struct {
	Op, Text string
	ID       uint64
	Code     int
}

func serveFleet(port string, args []string) error {
	f := &fleet{dir: args[0], done: map[string]uint64{}}
	text, _ := os.ReadFile(f.dir + "/log")
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); words[0] == "result" {
			f.done[words[1]]++
		}
	}
	var err error
	if f.log, err = os.OpenFile(f.dir+"/log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	return http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(f.serve))
}

func (f *fleet) note(format string, args ...any) { fmt.Fprintf(f.log, format+"\n", args...) }

func (f *fleet) serve(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow()
	f.note("dial %d", time.Now().UnixMilli())
	var q order
	if f.read(r.Context(), ws, &q) != nil || q.Op != "login" {
		return
	}
	name, secret, _ := strings.Cut(strings.TrimSpace(q.Text), " ")
	if want, _ := os.ReadFile(f.dir + "/secret"); secret != string(want) {
		f.note("refused %s", name)
		_ = f.write(r.Context(), ws, order{Op: "refused", Code: 401, Text: "an old token"})
		return
	}
	f.note("login %s", name)
	err = f.write(r.Context(), ws, order{Op: "welcome"})
	for err == nil {
		f.mu.Lock()
		id := f.done[name] + 1
		f.mu.Unlock()
		if id <= commands {
			err = f.write(r.Context(), ws, order{Op: "run", ID: id, Text: fmt.Sprint(id)})
		}
		for err == nil {
			if err = f.read(r.Context(), ws, &q); err == nil && q.Op == "result" && q.ID == id {
				f.mu.Lock()
				if f.done[name] < id { // not by another connection
					f.note("result %s %d %s", name, id, strings.ReplaceAll(q.Text, "\n", " "))
					f.done[name] = id
				}
				f.mu.Unlock()
				break
			}
		}
	}
}

func (f *fleet) read(ctx context.Context, ws *websocket.Conn, q *order) error {
	_, data, err := ws.Read(ctx)
	if err != nil {
		return err
	}
	*q = order{}
	return json.Unmarshal(data, q)
}

func (f *fleet) write(ctx context.Context, ws *websocket.Conn, q order) error {
	text, err := json.Marshal(q)
	if err != nil {
		return err
	}
	return ws.Write(ctx, websocket.MessageText, text)
}
