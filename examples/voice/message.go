package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
)

// A frame is a binary message: its number, from 1 on, and the sound of 20 ms.
const (
	every      = 20 * time.Millisecond
	frameBytes = 160 // 8,000 samples of a byte each second
)

func frame(n uint64) []byte {
	data := make([]byte, frameBytes)
	binary.BigEndian.PutUint64(data, n)
	return data
}

// number returns the number of a frame.
func number(data []byte) (uint64, error) {
	if len(data) != frameBytes {
		return 0, fmt.Errorf("a frame has %d bytes, want %d", len(data), frameBytes)
	}
	return binary.BigEndian.Uint64(data), nil
}

// control is a text message.
type control struct {
	// Type says what it is. "setup" is the first message of the caller, and "ready" the
	// answer. "goAway" warns that the service will end the connection. "hangUp" of the caller
	// ends the call, and "goodbye" of the service comes after its last frame.
	Type string `json:"type"`

	Handle   string `json:"handle,omitempty"`   // names a call; in "setup" that to resume
	TimeLeft int64  `json:"timeLeft,omitempty"` // in ms; of "goAway"
}

func (c control) message() conn.Message {
	m, err := conn.JSONMessage(c)
	if err != nil {
		panic(err) // a control can always be encoded
	}
	return m
}

func decode(data []byte) (c control, err error) {
	err = json.Unmarshal(data, &c)
	return c, err
}

// beat calls f with 1, 2, 3 and so on, every 20 ms, until f returns false or ctx ends.
func beat(ctx context.Context, f func(n uint64) bool) {
	t := time.NewTicker(every)
	defer t.Stop()
	for n := uint64(1); f(n); n++ {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}
