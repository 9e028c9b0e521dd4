package main

import (
	"bufio"
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"sync"
)

const permessageDeflate = "permessage-deflate"

// takeoverWire is the server's half of permessage-deflate with context takeover (RFC 7692), for one
// connection. The client's messages may refer to earlier ones. Those of the server do not, although they
// could: the client cannot know, and the server needs no flate.Writer for each connection.
type takeoverWire struct {
	window  []byte // the end of what the client has sent, inflated
	partial []byte // the payload of the frames of an unfinished message
	first   byte   // of the first frame of that message, or 0 if there is none
}

const (
	windowSize  = 32 << 10 // how far back a message may refer
	compressed  = 512      // every library compresses messages of this size
	deflateTail = "\x00\x00\xff\xff"
)

// deflaters holds the writers of package flate, of about 1.2 MB each.
var deflaters = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is right
	return w
}}

func (*takeoverWire) appendFrame(dst, p []byte) []byte {
	var out bytes.Buffer
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(&out)
	_, _ = w.Write(p) // never fails, as out does not
	_ = w.Flush()
	return appendWebSocket(dst, opBinary|bitRSV1, bytes.TrimSuffix(out.Bytes(), []byte(deflateTail)))
}

// readFrame is that of a wire. A frame that does not end a message is answered by nothing.
func (w *takeoverWire) readFrame(r *bufio.Reader, buf []byte) (p, answer []byte, err error) {
	first, p, answer, err := readWebSocket(r, buf, bitFin|bitRSV1)
	if err != nil || answer != nil {
		return p, answer, err
	}
	if w.first == 0 {
		w.first = first
	}
	w.partial = append(w.partial, p...)
	if len(w.partial) > 1<<20 {
		return nil, nil, fmt.Errorf("read message: more than %d bytes", len(w.partial))
	}
	if first&bitFin == 0 {
		return nil, []byte{}, nil
	}
	p, deflated := w.partial, w.first&bitRSV1 != 0
	w.partial, w.first = nil, 0
	if !deflated && len(p) >= compressed {
		return nil, nil, fmt.Errorf("read message: %d bytes are not compressed", len(p))
	}
	if deflated {
		p, err = w.inflate(p)
	}
	return p, nil, err
}

// inflate returns a message, and keeps the end of it for those that refer to it.
func (w *takeoverWire) inflate(p []byte) ([]byte, error) {
	const last = "\x01\x00\x00\xff\xff" // an empty final block, behind which flate does not read
	in := io.MultiReader(bytes.NewReader(p), bytes.NewReader([]byte(deflateTail+last)))
	r := flate.NewReaderDict(in, w.window)
	p, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	w.window = append(w.window, p...)
	w.window = bytes.Clone(w.window[max(0, len(w.window)-windowSize):])
	return p, nil
}
