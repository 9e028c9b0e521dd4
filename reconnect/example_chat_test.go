package reconnect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// chatLine is a line of the chat, or, without a text, the room's acknowledgement of one.
type chatLine struct {
	ID   int    `json:"id"` // chosen by the sender, so that a line which comes twice counts once
	Text string `json:"text,omitempty"`
}

// chatRoom is the server. It crashes when it has got its first line, before it could
// acknowledge it.
type chatRoom struct {
	mu    sync.Mutex
	lines []chatLine
}

func (room *chatRoom) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		var line chatLine
		if err := wsjson.Read(r.Context(), c, &line); err != nil {
			return
		}
		if first := room.keep(line); first {
			return
		}
		if err := wsjson.Write(r.Context(), c, chatLine{ID: line.ID}); err != nil {
			return
		}
	}
}

// keep notes a line, unless the room has it, and reports whether it is the first of all.
func (room *chatRoom) keep(line chatLine) bool {
	room.mu.Lock()
	defer room.mu.Unlock()
	if slices.Contains(room.lines, line) {
		return false
	}
	room.lines = append(room.lines, line)
	return len(room.lines) == 1
}

// sentLog has the lines that the room has not acknowledged yet, in order. A line that was
// written has reached the kernel and not always the room, so that only the room's word
// counts.
type sentLog struct {
	mu    sync.Mutex
	lines []sentLine
}

type sentLine struct {
	chatLine
	tried bool // a session has written it, or may have
}

func (s *sentLog) add(line chatLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, sentLine{chatLine: line})
}

// remove forgets a line, and returns how many are left.
func (s *sentLog) remove(id int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = slices.DeleteFunc(s.lines, func(l sentLine) bool { return l.ID == id })
	return len(s.lines)
}

// onReceipt notes what became of a line that Send accepted.
func (s *sentLog) onReceipt(_ context.Context, r reconnect.Receipt) {
	id := r.Outgoing.Tag.(int)
	if r.Fate == reconnect.FateDropped {
		fmt.Printf("line %d was not sent: %v\n", id, r.Err) // it became too old, or the program ends
		s.remove(id)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.lines {
		if s.lines[i].ID == id {
			s.lines[i].tried = true
		}
	}
}

// resend is the OnSession: it sends again what earlier sessions may have lost. Lines that
// were never tried are still in the outbox, and follow by themselves.
func (s *sentLog) resend(_ context.Context, o *reconnect.Opening) error {
	if err := o.AwaitReceipts(); err != nil { // so that the log knows what was tried
		return err
	}
	s.mu.Lock()
	again := slices.Clone(s.lines)
	s.mu.Unlock()
	for _, line := range again {
		if !line.tried {
			continue
		}
		if err := o.Write(encode(line.chatLine)); err != nil {
			return err
		}
	}
	return nil
}

func encode(line chatLine) conn.Message {
	data, _ := json.Marshal(line) // has no error, because a chatLine has nothing that JSON has not
	return conn.TextMessage(string(data))
}

// A chat: what is typed while there is no connection is kept, and each line reaches the
// room once, because it has an id and is sent again until the room acknowledges it. This is how to
// do it by hand, with Send; ledger.Ledger does the same, with less code.
func Example_chat() {
	room := &chatRoom{}
	server := httptest.NewServer(room)
	defer server.Close()

	sent := &sentLog{}
	chat, err := reconnect.New(&dialer.WebSocket{URL: "ws" + server.URL[len("http"):]}, &reconnect.Options{
		WhenDown:  reconnect.WhenDownKeep,
		OnSession: sent.resend,
		Outbox:    reconnect.Outbox{OnReceipt: sent.onReceipt},
		Run:       reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond}}, // so that the example is quick: leave it out
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer chat.Close()

	for i, text := range []string{"hello", "anybody there?"} {
		line := chatLine{ID: i + 1, Text: text}
		sent.add(line)
		if err := chat.Send(reconnect.Outgoing{Message: encode(line), Tag: line.ID}); err != nil {
			fmt.Println("not accepted:", err) // the outbox is full
		}
	}

	ctx := context.Background()
	for m, err := range chat.Messages(ctx) {
		if _, lost := errors.AsType[*reconnect.Seam](err); lost {
			continue // resend does what is to be done
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		var line chatLine
		if err := json.Unmarshal(m.Data, &line); err != nil {
			continue // not from a room like this
		}
		fmt.Println("acknowledged:", line.ID)
		if sent.remove(line.ID) == 0 {
			break
		}
	}
	fmt.Println(chat.Shutdown(ctx))
	room.mu.Lock()
	defer room.mu.Unlock()
	fmt.Println(room.lines)
	// Output:
	// acknowledged: 1
	// acknowledged: 2
	// <nil>
	// [{1 hello} {2 anybody there?}]
}
