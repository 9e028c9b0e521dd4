//go:build linux

package recipes_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// peer is the server's end of a connection.
type peer interface {
	send(texts ...string) error
	read() (text string, err error)
}

// web is a peer of WebSocket messages.
type web struct {
	ctx context.Context
	c   *websocket.Conn
}

func (p web) send(texts ...string) error { return send(p.ctx, p.c, texts...) }

func (p web) read() (string, error) {
	_, data, err := p.c.Read(p.ctx)
	return string(data), err
}

// lines is a peer of lines over TCP.
type lines struct {
	c  net.Conn
	in *bufio.Reader
}

func (p lines) send(texts ...string) error {
	if len(texts) == 0 {
		return nil
	}
	_, err := io.WriteString(p.c, strings.Join(texts, "\r\n")+"\r\n")
	return err
}

func (p lines) read() (string, error) {
	text, err := p.in.ReadString('\n')
	return strings.TrimRight(text, "\r\n"), err
}

// readUntil reads messages until one contains text, and returns that.
func readUntil(p peer, text string) (string, error) {
	for {
		m, err := p.read()
		if err != nil || strings.Contains(m, text) {
			return m, err
		}
	}
}

// talk is a server that behaves.
type talk struct {
	open  func(p peer) error // makes a session ready; nil if there is nothing to do
	say   func(p peer) error // has the program print something, or waits for a message
	want  string             // matches each line of the output; empty if there is none
	input string             // a line for the program, or empty
}

// run talks for one connection, in which garbage, if any, comes before or after open.
func (k *talk) run(p peer, before, after []string) error {
	err := p.send(before...)
	if err == nil && k.open != nil {
		err = k.open(p)
	}
	if err == nil {
		err = p.send(after...)
	}
	if err == nil {
		err = k.say(p)
	}
	return err
}

// says returns a say that sends texts.
func says(texts ...string) func(peer) error {
	return func(p peer) error { return p.send(texts...) }
}

// answers returns an open that reads a message and sends texts.
func answers(texts ...string) func(peer) error {
	return func(p peer) error {
		if _, err := p.read(); err != nil {
			return err
		}
		return p.send(texts...)
	}
}

// pong answers PINGs until it has answered one that came after a line with text.
func pong(p peer, text string) error {
	for seen := text == ""; ; {
		m, err := p.read()
		if err != nil {
			return err
		}
		seen = seen || strings.Contains(m, text)
		if m == "PING" {
			if err := p.send("PONG"); err != nil || seen {
				return err
			}
		}
	}
}

// openNATS answers PINGs until it has answered one that came after the subscription.
func openNATS(p peer) error {
	if err := p.send(`INFO {"server_id":"a","version":"2.10.0","max_payload":1048576}`); err != nil {
		return err
	}
	return pong(p, "SUB")
}

const mark = "snapshot: nothing is missing after this line"

// talks are the programs whose server can be imitated in a few lines. The tests of amqp, mqtt and
// postgres are in bench/interop/recipes.
var talks = map[string]talk{
	"agent": {
		open: answers(`{"Op":"welcome"}`),
		say: func(p peer) error {
			if err := p.send(`{"Op":"run","ID":1,"Text":"list"}`); err != nil {
				return err
			}
			_, err := readUntil(p, `"Op":"result","Text":"list\n`)
			return err
		},
	},
	"book": {
		open: answers(),
		say:  says(`{"book":"BTC","type":"snapshot","seq":1}`),
		want: `^BTC 1 map\[\] map\[\]$`,
	},
	"booksnapshot": {
		say:  says(`{"book":"BTC","first":2,"last":2,"bids":[[1,1]]}`),
		want: `^BTC 2 map\[1:1\] map\[\]$`,
	},
	"centrifugo": {
		open: answers(`{"id":1,"connect":{}}`, `{"id":2,"subscribe":{"epoch":"e","offset":1}}`),
		say:  says(`{"push":{"pub":{"offset":2,"data":"two"}}}`),
		want: `^(snapshot: what follows comes after offset 1|"two")$`,
	},
	"chat": {
		open: answers(`{"type":"welcome","room":"r"}`),
		say:  says(`{"type":"line","seq":1,"id":1,"from":"1","name":"bob","text":"hello"}`),
		want: `^bob: hello$`,
	},
	"graphqlws": {
		open: answers(`{"type":"connection_ack"}`),
		say:  says(`{"type":"next","id":"subscription { a }","payload":{}}`),
		want: `^(snapshot: subscribed by session \d|{"type":"next","id":"subscription { a }","payload":{}})$`,
	},
	"jsonrpc": {
		open: answers(`{"jsonrpc":"2.0","id":1,"result":"0x1"}`),
		say:  says(`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":"0xa"}}`),
		want: `^(` + mark + `|newHeads "0xa")$`,
	},
	"lines": {
		say: func(p peer) error {
			text, err := p.read()
			if err == nil {
				err = p.send(text)
			}
			return err
		},
		want:  `^one$`,
		input: "one",
	},
	"nats":   {open: openNATS, say: says("MSG news 1 5", "hello"), want: `^(` + mark + `|hello)$`},
	"natsgo": {open: openNATS, say: says("MSG news 1 5", "hello"), want: `^(` + mark + `|hello)$`},
	"ocpp": {
		open: answers(`[3,"boot",{"status":"Accepted"}]`),
		say: func(p peer) error {
			_, err := readUntil(p, `"TransactionEvent",{"event":1}]`)
			if err == nil {
				err = p.send(`[3,"1",{}]`)
			}
			return err
		},
		want:  `^stored$`,
		input: `{"event":1}`,
	},
	"socketio": {
		open: func(p peer) error {
			if err := p.send(`0{"sid":"a"}`); err != nil {
				return err
			}
			return answers(`40{"sid":"b"}`)(p)
		},
		say:  says(`42["event"]`),
		want: `^(snapshot: session \d begins without its past|\["event"\])$`,
	},
	"voice": {open: answers(`{"type":"ready","handle":"call"}`), say: saySound, want: `^(sound)+$`},
	"wscat": {say: says("message"), want: `^message$`},
}

func saySound(p peer) error {
	w := p.(web)
	return w.c.Write(w.ctx, websocket.MessageBinary, []byte("sound\n"))
}

// serveTalk serves a program. It calls f with each connection, and reads from the connection until it
// has ended.
func serveTalk(t *testing.T, name string, f func(p peer, n int)) (address string) {
	if raw[name] {
		return serveRaw(t, func(c net.Conn, n int) {
			p := lines{c, bufio.NewReader(c)}
			f(p, n)
			_, _ = io.Copy(io.Discard, p.in)
		})
	}
	url := serveWebSocket(t, func(ctx context.Context, c *websocket.Conn, n int) {
		f(web{ctx, c}, n)
		drain(ctx, c)
	})
	return strings.TrimPrefix(url, "ws://")
}

// argumentsOf returns the arguments of a program for a server at an address.
func argumentsOf(t *testing.T, name, address string) []string {
	args := programs[name](t, address)
	if name == "booksnapshot" {
		depth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"book":"BTC","last":1}`)
		}))
		t.Cleanup(depth.Close)
		args[3] = depth.URL
	}
	return args
}
