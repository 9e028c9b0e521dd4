// Package loop is the loop around websocket.Dial that people write by hand, to be compared with redial.
//
//	go test -v ./loop
//
// prints how many connections both make, and how many messages both receive, in ten minutes of a server that misbehaves.
package loop

import (
	"context"
	"log"
	"time"

	"github.com/coder/websocket"
)

// Follow calls handle with each message of the server at url, until ctx ends. It dials again when the connection is lost. After a dial
// that fails it waits, from 1 s up to 30 s.
func Follow(ctx context.Context, url string, o *websocket.DialOptions, login []byte, handle func([]byte)) error {
	wait := time.Second
	for {
		c, _, err := websocket.Dial(ctx, url, o)
		if err != nil {
			log.Printf("dial: %v, again in %v", err, wait)
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return ctx.Err()
			}
			wait = min(2*wait, 30*time.Second)
			continue
		}
		wait = time.Second
		err = serve(ctx, c, login, handle)
		c.CloseNow()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		log.Printf("lost: %v", err)
	}
}

func serve(ctx context.Context, c *websocket.Conn, login []byte, handle func([]byte)) error {
	if err := c.Write(ctx, websocket.MessageText, login); err != nil {
		return err
	}
	for {
		_, data, err := c.Read(ctx)
		if err != nil {
			return err
		}
		handle(data)
	}
}
