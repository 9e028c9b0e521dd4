package conn

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// unhex returns the bytes that s names, spaces apart.
func unhex(s string) string {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return string(b)
}

// kindOf returns what an error of Read is, for tables.
func kindOf(err error) string {
	var protocol *ProtocolError
	var closed *CloseError
	var big *TooBigError
	switch {
	case errors.As(err, &protocol):
		return "protocol"
	case errors.As(err, &closed):
		return fmt.Sprint("close ", closed.Code)
	case errors.As(err, &big):
		return "too big"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "cut"
	case errors.Is(err, io.EOF):
		return "end"
	}
	return fmt.Sprintf("%T", errors.Unwrap(err))
}

// frameCase is what a server sends before it hangs up, what Read returns of it, joined
// by bars, and the code of the close frame that it gets; 0: none.
type frameCase struct {
	name  string
	sends string
	want  string
	code  int
}

var (
	tail  = frame(fin|text, "tail")
	hello = frame(fin|rsv1|text, unhex("f248cdc9c90700")) // RFC 7692 7.2.3.1
	final = frame(fin|rsv1|text, unhex("f348cdc9c9070000"))
)

var plainFrames = []frameCase{
	{"text", frame(fin|text, "a") + frame(fin|bin, "b"), "a|b|end", 0},
	{"empty", frame(fin|text, ""), "|end", 0},
	{"empty fragments", frame(text, "") + frame(0, "") + frame(fin, ""), "|end", 0},
	{"ping among fragments", frame(text, "a") + frame(fin|ping, "p") + frame(fin, "b"), "ab|end", 0},
	{"text between pings", frame(fin|ping, "a") + frame(fin|ping, "b") + tail + frame(fin|ping, "c") + tail, "tail|tail|end", 0},
	{"close behind pings", frame(fin|ping, "a") + frame(fin|pong, "b") + goodbye + frame(fin|ping, "c") + tail, "close 1000", 1000},
	{"masked ping behind pings", frame(fin|ping, "a") + frame(fin|ping, "b") + "\x89\x80\x01\x02\x03\x04" + tail, "protocol", 1002},
	{"opcode 11 behind pings", frame(fin|ping, "a") + frame(fin|ping, "b") + frame(fin|11, "") + tail, "protocol", 1002},
	{"cut in a ping behind pings", frame(fin|ping, "a") + frame(fin|ping, "b") + "\x89\x03\x03\xe8", "cut", 0},
	{"pong nobody asked for", frame(fin|pong, "zz") + tail, "tail|end", 0},
	{"text that is not UTF-8, unchecked", frame(fin|text, "\xce\xba\xff"), "\xce\xba\xff|end", 0},
	{"masked text", "\x81\x85\x01\x02\x03\x04" + "Igohn", "protocol", 1002},
	{"masked ping", "\x89\x80\x01\x02\x03\x04" + tail, "protocol", 1002},
	{"RSV1", frame(fin|rsv1|text, "a") + tail, "protocol", 1002},
	{"RSV2", frame(fin|0x20|text, "a") + tail, "protocol", 1002},
	{"RSV3", frame(fin|0x10|text, "a") + tail, "protocol", 1002},
	{"RSV1 of a ping", frame(fin|rsv1|ping, "") + tail, "protocol", 1002},
	{"opcode 3", frame(fin|3, "") + tail, "protocol", 1002},
	{"opcode 7", frame(fin|7, "") + tail, "protocol", 1002},
	{"opcode 11", frame(fin|11, "") + tail, "protocol", 1002},
	{"opcode 15", frame(fin|15, "") + tail, "protocol", 1002},
	{"ping of 126", frame(fin|ping, strings.Repeat("x", 126)) + tail, "protocol", 1002},
	{"close of 126", frame(fin|close8, "\x03\xe8"+strings.Repeat("x", 124)) + tail, "protocol", 1002},
	{"fragmented ping", frame(ping, "") + frame(fin, "") + tail, "protocol", 1002},
	{"continuation of nothing", frame(fin, "x") + tail, "protocol", 1002},
	{"unfinished continuation of nothing", frame(0, "x") + tail, "protocol", 1002},
	{"text in text", frame(text, "x") + frame(fin|text, "y"), "protocol", 1002},
	{"16 bit length of 1", "\x81\x7e\x00\x01x", "protocol", 1002},
	{"16 bit length of 125", "\x81\x7e\x00\x7d" + strings.Repeat("x", 125), "protocol", 1002},
	{"16 bit length of 126", frame(fin|text, strings.Repeat("x", 126)), strings.Repeat("x", 126) + "|end", 0},
	{"64 bit length of 1", "\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x01x", "protocol", 1002},
	{"64 bit length of 65535", "\x81\x7f\x00\x00\x00\x00\x00\x00\xff\xff", "protocol", 1002},
	{"length with its first bit", "\x81\x7f\x80\x00\x00\x00\x00\x00\x00\x01x", "protocol", 1002},
	{"length of a ping with its first bit", "\x89\x7f\xff\xff\xff\xff\xff\xff\xff\xff", "protocol", 1002},
	{"length of an unknown frame with its first bit", "\x83\x7f\x80\x00\x00\x00\x00\x00\x00\x00", "protocol", 1002},
	{"1 TiB", "\x82\x7f\x00\x00\x01\x00\x00\x00\x00\x00abc", "too big", 1009},
	{"fragments over the limit", frame(bin, "abc") + "\x00\x7f\x00\x00\x01\x00\x00\x00\x00\x00", "too big", 1009},
	{"close without a code", frame(fin|close8, ""), "close 1005", 1005},
	{"close of 1 byte", frame(fin|close8, "\x03"), "protocol", 1002},
	{"close with a reason", frame(fin|close8, "\x03\xe8bye"), "close 1000", 1000},
	{"close reason that is not UTF-8, unchecked", frame(fin|close8, "\x03\xe8\xff\xfe"), "close 1000", 1000},
	{"text after close", frame(fin|close8, "\x03\xe8") + tail, "close 1000", 1000},
	{"nothing", "", "end", 0},
	{"cut in a header", "\x81", "cut", 0},
	{"cut in a length", "\x81\x7e\x01", "cut", 0},
	{"cut in a payload", "\x81\x03a", "cut", 0},
	{"cut between fragments", frame(text, "a"), "cut", 0},
	{"cut behind a ping between fragments", frame(text, "a") + frame(fin|ping, ""), "cut", 0},
	{"cut in a close frame", "\x88\x03\x03\xe8", "cut", 0},
	{"cut in a ping", "\x89\x03\x03\xe8", "cut", 0},
}

var compressedFrames = []frameCase{
	{"Hello", hello + tail, "Hello|tail|end", 0},
	{"stored block", frame(fin|rsv1|text, unhex("000500faff48656c6c6f00")) + tail, "Hello|tail|end", 0},
	{"final blocks", final + final + tail, "Hello|Hello|tail|end", 0},
	{"final block, then none", final + tail + hello + tail, "Hello|tail|Hello|tail|end", 0},
	{"final block without the empty one", frame(fin|rsv1|text, unhex("f348cdc9c90700")) + tail, "Hello|tail|end", 0},
	{"two final blocks in one message", frame(fin|rsv1|text, unhex("f348cdc9c90700 f348cdc9c90700 00")) + tail, "HelloHello|tail|end", 0},
	{"junk behind a final block", frame(fin|rsv1|text, unhex("f348cdc9c9070000")+"\x00junk"+tail) + tail, "protocol", 1007},
	{"frames behind a final block", frame(fin|rsv1|text, unhex("f348cdc9c90700")+tail), "protocol", 1007},
	{"two blocks", frame(fin|rsv1|text, unhex("f24805000000ffffcac9c90700")) + tail, "Hello|tail|end", 0},
	{"fragments", frame(rsv1|text, unhex("f248cd")) + frame(fin|ping, "") + frame(fin, unhex("c9c90700")) + tail, "Hello|tail|end", 0},
	{"empty fragments", frame(rsv1|text, "") + frame(0, unhex("f248cdc9c90700")) + frame(fin, "") + tail, "Hello|tail|end", 0},
	{"RSV1 of a continuation", frame(rsv1|text, unhex("f248cd")) + frame(fin|rsv1, unhex("c9c90700")) + tail, "protocol", 1002},
	{"RSV1 of a ping", frame(fin|rsv1|ping, "") + tail, "protocol", 1002},
	{"text in compressed text", frame(rsv1|text, unhex("f248cd")) + tail, "protocol", 1002},
	{"cut short under FIN", frame(fin|rsv1|text, unhex("f248cd")) + tail, "protocol", 1007},
	{"stored block cut short by 4 bytes", frame(fin|rsv1|text, unhex("000500faff48")) + tail, "protocol", 1007},
	{"stored block cut short in its length", frame(fin|rsv1|text, unhex("000500")) + tail, "protocol", 1007},
	{"corrupt", frame(fin|rsv1|text, unhex("ffffffff")) + tail, "protocol", 1007},
	{"no payload", frame(fin|rsv1|text, "") + tail, "|tail|end", 0},
	{"empty message", frame(fin|rsv1|text, "\x00") + tail, "|tail|end", 0},
	{"cut", "\xc1\x07\xf2\x48\xcd", "cut", 0},
	{"cut between fragments", frame(rsv1|text, unhex("f248cd")), "cut", 0},
	{"bomb", frame(fin|rsv1|bin, bomb), "too big", 1009},
	{"1 TiB of empty blocks", frame(rsv1|bin, strings.Repeat("\x00\x00\x00\xff\xff", 1000)) + "\x00\x7f\x00\x00\x01\x00\x00\x00\x00\x00", "too big", 1009},
}

// takeoverFrames are compressed messages that refer to those before them.
var takeoverFrames = []frameCase{
	{"Hello twice", hello + frame(fin|rsv1|text, unhex("f200110000")) + tail, "Hello|Hello|tail|end", 0}, // RFC 7692 7.2.3.2
	{"no payload between", hello + frame(fin|rsv1|text, "") + frame(fin|rsv1|text, unhex("f200110000")), "Hello||Hello|end", 0},
}

// checkedFrames are read with CheckUTF8. notUTF8 is "a", and the first two bytes of a rune
// of three.
var checkedFrames = []frameCase{
	{"text", frame(fin|text, "\xce\xba\xe1\xbd\xb9") + tail, "\xce\xba\xe1\xbd\xb9|tail|end", 0},
	{"rune in two fragments", frame(text, "\xe1\xbd") + frame(fin, "\xb9") + tail, "\xe1\xbd\xb9|tail|end", 0},
	{"empty", frame(fin|text, "") + tail, "|tail|end", 0},
	{"binary", frame(fin|bin, notUTF8) + tail, notUTF8 + "|tail|end", 0},
	{"text that is not UTF-8", frame(fin|text, notUTF8) + tail, "protocol", 1007},
	{"text that is not UTF-8 behind another", tail + frame(fin|text, notUTF8) + tail, "tail|protocol", 1007},
	{"large text that is not UTF-8", frame(fin|text, strings.Repeat("x", 9000)+notUTF8) + tail, "protocol", 1007},
	{"fragments", frame(text, "x") + frame(fin|ping, "p") + frame(fin, notUTF8) + tail, "protocol", 1007},
	{"rune that ends in the next message", frame(fin|text, "\xe1\xbd") + frame(fin|text, "\xb9"), "protocol", 1007},
	{"compressed", frame(fin|rsv1|text, compressed("\xce\xba")) + tail, "\xce\xba|tail|end", 0},
	{"compressed text that is not UTF-8", frame(fin|rsv1|text, compressed(notUTF8)) + tail, "protocol", 1007},
	{"compressed binary", frame(fin|rsv1|bin, compressed(notUTF8)) + tail, notUTF8 + "|tail|end", 0},
	{"text that was cut in a rune", "\x81\x05a\xe1\xbd", "cut", 0},
	{"close reason", frame(fin|close8, "\x03\xe8\xce\xba"), "close 1000", 1000},
	{"close reason that is not UTF-8", frame(fin|close8, "\x03\xe8"+notUTF8), "protocol", 1007},
	{"close reason that is not UTF-8 behind a ping", frame(fin|ping, "a") + frame(fin|close8, "\x03\xe8"+notUTF8), "protocol", 1007},
	{"close code that is not UTF-8", frame(fin|close8, "\x0f\xa0"), "close 4000", 4000},
}

const notUTF8 = "a\xe1\xbd"

// bomb says 30 MiB of zeros in some 30 kB.
var bomb = compressed(strings.Repeat("\x00", 30<<20))

func TestFramesOneByOne(t *testing.T) {
	cases := plainFrames
	for _, code := range []uint16{0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535} {
		payload := string(binary.BigEndian.AppendUint16(nil, code))
		cases = append(cases, frameCase{fmt.Sprint("close code ", code), frame(fin|close8, payload), "protocol", 1002})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(t, nil, websocket.CompressionDisabled) })
	}
}

func TestCompressedFramesOneByOne(t *testing.T) {
	for _, c := range compressedFrames {
		t.Run(c.name, func(t *testing.T) { c.test(t, nil, websocket.CompressionNoContextTakeover) })
	}
	for _, c := range takeoverFrames {
		t.Run(c.name, func(t *testing.T) { c.test(t, nil, websocket.CompressionContextTakeover) })
	}
}

func TestCheckedFramesOneByOne(t *testing.T) {
	for _, c := range checkedFrames {
		t.Run(c.name, func(t *testing.T) {
			c.test(t, &WebSocketOptions{CheckUTF8: true}, websocket.CompressionNoContextTakeover)
		})
	}
}

// test sends the frames whole, and byte by byte.
func (c frameCase) test(t *testing.T, o *WebSocketOptions, mode websocket.CompressionMode) {
	for _, chopped := range []bool{false, true} {
		if chopped && len(c.sends) > 10_000 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			l := dial(t, o, mode)
			if !chopped {
				l.send(c.sends)
				l.raw.reset(io.EOF)
			} else {
				go func() {
					for i := range len(c.sends) {
						l.send(c.sends[i : i+1])
						time.Sleep(time.Nanosecond)
					}
					l.raw.reset(io.EOF)
				}()
			}
			var got []string
			for err := error(nil); err == nil; {
				var m Message
				if m, err = l.Read(nil); err == nil {
					got = append(got, string(m.Data))
				} else {
					got = append(got, kindOf(err))
				}
			}
			require.Equal(t, c.want, strings.Join(got, "|"))
			sleep(t, second) // until all is sent
			require.Equal(t, c.code, closeCode(l.raw.in.data))
		})
	}
}

// closeCode returns the code of the close frame that ends what a client has sent; 0:
// none; 1005: a close frame without a code.
func closeCode(sent []byte) int {
	for len(sent) > 0 {
		first, size := sentFrame(sent)
		if first == fin|close8 {
			key, payload := sent[2:6], sent[6:size]
			if len(payload) == 0 {
				return noStatus
			}
			return int(payload[0]^key[0])<<8 | int(payload[1]^key[1])
		}
		sent = sent[size:]
	}
	return 0
}
