package readers

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// controlFrame is a control frame in one of the places where it may stand.
type controlFrame struct {
	op, size int
	place    string
}

// places are where a control frame may stand: between two messages, between two messages in fragments,
// between two fragments, several times between two fragments, and behind the close frame that ends the stream.
var places = []string{"messages", "neighbours", "fragments", "burst", "close"}

func (c controlFrame) String() string {
	return fmt.Sprintf("opcode %d, %d bytes, %s", c.op, c.size, c.place)
}

// payload returns the payload of the frame. That of a close frame has a code.
func (c controlFrame) payload() []byte {
	p := []byte(strings.Repeat("p", c.size))
	if c.op == opClose && c.size >= 2 {
		binary.BigEndian.PutUint16(p, 4321)
	}
	return p
}

// stream returns a stream with the frame, and the frames that answer it and the end.
func (c controlFrame) stream(conditions conditions) (s stream, answers []string) {
	w := &writer{stream: stream{conditions: conditions}}
	fragments := func(between int) {
		w.add(opText, []byte("one "))
		for range between {
			w.add(0x80|byte(c.op), c.payload())
		}
		w.add(opContinuation, nil)
		w.add(0x80|opContinuation, []byte("message"))
	}
	n := 1
	switch c.place {
	case "messages":
		w.add(0x80|opText, []byte("before"))
		w.add(0x80|byte(c.op), c.payload())
		w.add(0x80|opBinary, []byte("after"))
	case "neighbours":
		fragments(0)
		w.add(0x80|byte(c.op), c.payload())
		fragments(0)
	case "fragments":
		fragments(1)
	case "burst":
		n = 20
		fragments(n)
	}
	w.add(0x80|opClose, []byte{0x03, 0xe8, 'b', 'y', 'e'})
	bye := "\x88\x05\x03\xe8bye"
	if c.place == "close" {
		w.add(0x80|byte(c.op), c.payload())
		return w.stream, []string{bye}
	}
	answer := string([]byte{0x80 | byte(c.op), byte(c.size)}) + string(c.payload())
	switch c.op {
	case opPong:
		return w.stream, []string{bye}
	case opClose: // nothing follows it
		return w.stream, []string{answer}
	}
	answer = string([]byte{0x80 | opPong, byte(c.size)}) + string(c.payload())
	return w.stream, append(slices.Repeat([]string{answer}, n), bye)
}

// TestEveryControlFrame gives each control frame that keeps the rules, of 0 to 125 bytes, in each place to the
// four clients. All read the same messages, send the same pongs, and end in the same way, but for the rows of
// the table. What they send is the same byte for byte, except for the masks, and for the reason of a close frame,
// which gorilla/websocket and gws do not repeat.
func TestEveryControlFrame(t *testing.T) {
	tr := &trial{used: map[*row]int{}, by: map[rule]int{}, ends: map[string]int{}}
	for i, conditions := range []conditions{{}, {compressed: true}, {compressed: true, takeover: true}} {
		for _, op := range []int{opClose, opPing, opPong} {
			for _, place := range places {
				for size := range maxControl + 1 {
					if op == opClose && size == 1 { // which breaks a rule
						continue
					}
					conditions.checkUTF8 = size%2 == 0
					c := controlFrame{op, size, place}
					s, answers := c.stream(conditions)
					s.cuts = [][]int{nil, {1}, {3, 7}}[(size+i)%3]
					for _, client := range clients {
						require.Empty(t, tr.differs(s, client.name, client.read).text, "%s, %v: %v", client.name, c, s)
					}
					for _, client := range clients {
						if client.name == "gorilla" && conditions.takeover {
							continue
						}
						script := newScript(conditions, s.bytes(), s.cuts)
						client.read(script)
						want := answers
						if client.name == "gorilla" || client.name == "gws" {
							want = withoutReason(answers)
						}
						require.Equal(t, want, script.unmasked(), "%s, %v: %v", client.name, c, s)
					}
				}
			}
		}
	}
}

// withoutReason returns frames, of which the last is a close frame, with no more than its code.
func withoutReason(frames []string) []string {
	last := frames[len(frames)-1]
	if len(last) <= 2+2 {
		return frames
	}
	return append(slices.Clone(frames[:len(frames)-1]), "\x88\x02"+last[2:4])
}

// unmasked returns the frames that the client has sent, without their masks.
func (s *script) unmasked() (frames []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sent := s.sent.Bytes(); len(sent) > 0; {
		h := parseHead(sent)
		if !h.masked || !h.whole || h.size != 6 {
			return append(frames, fmt.Sprintf("a broken frame: %x", sent))
		}
		f := bytes.Clone(sent[:h.size+int(h.length)])
		for i := range f[h.size:] {
			f[h.size+i] ^= f[2+i%4]
		}
		frames = append(frames, string(append([]byte{f[0], f[1] &^ 0x80}, f[h.size:]...)))
		sent = sent[len(f):]
	}
	return frames
}
