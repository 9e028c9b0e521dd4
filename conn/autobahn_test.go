package conn

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The cases of the Autobahn test suite for clients, by its numbers: groups 1 to 7 and
// 9, that is RFC 6455 without extensions. The server sends frames over a real socket,
// whole or in pieces of some bytes; the client sends each message back. The sizes of
// group 9 are smaller, because here they are no measurement.

// autobahn is one case.
type autobahn struct {
	number string
	sends  string
	want   string // what the client sends: echoes, pongs, then its close frame
	piece  int    // bytes; 0: all at once
}

const (
	failed   = "close 1002"
	badUTF8  = "close 1007"
	finished = "close 1000"
)

var (
	goodbye = frame(fin|close8, "\x03\xe8")
	helloT  = frame(fin|text, "Hello")
	greek   = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"
)

// chopped returns c as three cases: at once, and in pieces of two sizes, which stand for
// Autobahn's frame-wise and octet-wise chops.
func chopped(group string, first int, sends, want string) (cs []autobahn) {
	for i, piece := range []int{0, 7, 1} {
		cs = append(cs, autobahn{fmt.Sprintf("%s.%d", group, first+i), sends, want, piece})
	}
	return cs
}

func framing() (cs []autobahn) {
	for group, op := range map[int]byte{1: text, 2: bin} {
		for i, size := range []int{0, 125, 126, 127, 128, 65535, 65536, 65536} {
			data := strings.Repeat("*", size)
			c := autobahn{fmt.Sprintf("1.%d.%d", group, i+1), large(fin|op, data) + goodbye, echo(data) + finished, 0}
			if i == 7 {
				c.piece = 997
			}
			cs = append(cs, c)
		}
	}
	return cs
}

func pings() []autobahn {
	binary, full := "\x00\xff\xfe\xfd\xfc\xfb\x00\xff", strings.Repeat("\xfe", 125)
	ten, pongs := "", ""
	for i := range 10 {
		payload := fmt.Sprint("payload-", i)
		ten, pongs = ten+frame(fin|ping, payload), pongs+"pong "+payload+"|"
	}
	return []autobahn{
		{"2.1", frame(fin|ping, "") + goodbye, "pong |" + finished, 0},
		{"2.2", frame(fin|ping, "Hello, world!") + goodbye, "pong Hello, world!|" + finished, 0},
		{"2.3", frame(fin|ping, binary) + goodbye, "pong " + binary + "|" + finished, 0},
		{"2.4", frame(fin|ping, full) + goodbye, "pong " + full + "|" + finished, 0},
		{"2.5", frame(fin|ping, full+"\xfe") + goodbye, failed, 0},
		{"2.6", frame(fin|ping, full) + goodbye, "pong " + full + "|" + finished, 1},
		{"2.7", frame(fin|pong, "") + goodbye, finished, 0},
		{"2.8", frame(fin|pong, "unsolicited pong payload") + goodbye, finished, 0},
		{"2.9", frame(fin|pong, "unsolicited pong payload") + frame(fin|ping, "ping payload") + goodbye, "pong ping payload|" + finished, 0},
		{"2.10", ten + goodbye, pongs + finished, 0},
		{"2.11", ten + goodbye, pongs + finished, 1},
	}
}

func reserved() []autobahn {
	return []autobahn{
		{"3.1", frame(fin|0x10|text, "Hello") + goodbye, failed, 0},
		{"3.2", helloT + frame(fin|0x20|text, "Hello") + frame(fin|ping, ""), echo("Hello") + failed, 0},
		{"3.3", helloT + frame(fin|0x30|text, "Hello") + frame(fin|ping, ""), echo("Hello") + failed, 7},
		{"3.4", helloT + frame(fin|0x40|text, "Hello") + frame(fin|ping, ""), echo("Hello") + failed, 1},
		{"3.5", frame(fin|0x50|bin, "\x00\xff\xfe") + goodbye, failed, 0},
		{"3.6", frame(fin|0x60|ping, "Hello") + goodbye, failed, 0},
		{"3.7", frame(fin|0x70|close8, "") + goodbye, failed, 0},
		{"4.1.1", frame(fin|3, "") + goodbye, failed, 0},
		{"4.1.2", frame(fin|4, "reserved opcode payload") + goodbye, failed, 0},
		{"4.1.3", helloT + frame(fin|5, "") + frame(fin|ping, ""), echo("Hello") + failed, 0},
		{"4.1.4", helloT + frame(fin|6, "reserved") + frame(fin|ping, ""), echo("Hello") + failed, 0},
		{"4.1.5", helloT + frame(fin|7, "reserved") + frame(fin|ping, ""), echo("Hello") + failed, 1},
		{"4.2.1", frame(fin|11, "") + goodbye, failed, 0},
		{"4.2.2", frame(fin|12, "reserved opcode payload") + goodbye, failed, 0},
		{"4.2.3", helloT + frame(fin|13, "") + frame(fin|ping, ""), echo("Hello") + failed, 0},
		{"4.2.4", helloT + frame(fin|14, "reserved") + frame(fin|ping, ""), echo("Hello") + failed, 0},
		{"4.2.5", helloT + frame(fin|15, "reserved") + frame(fin|ping, ""), echo("Hello") + failed, 1},
	}
}

func fragmentation() (cs []autobahn) {
	two := frame(text, "fragment1") + frame(fin, "fragment2")
	both := echo("fragment1fragment2")
	around := frame(text, "fragment1") + frame(fin|ping, "ping payload") + frame(fin, "fragment2") + goodbye
	five := frame(text, "fragment1") + frame(0, "fragment2") + frame(fin|ping, "pongme 1!") +
		frame(0, "fragment3") + frame(0, "fragment4") + frame(fin|ping, "pongme 2!") + frame(fin, "fragment5") + goodbye
	fiveBack := "pong pongme 1!|pong pongme 2!|" + echo("fragment1fragment2fragment3fragment4fragment5") + finished
	cs = []autobahn{
		{"5.1", frame(ping, "fragment1") + frame(fin, "fragment2"), failed, 0},
		{"5.2", frame(pong, "fragment1") + frame(fin, "fragment2"), failed, 0},
		{"5.15", two + frame(0, "fragment3") + frame(fin|text, "fragment4"), both + failed, 0},
		{"5.16", strings.Repeat(frame(0, "fragment1")+frame(text, "fragment2")+frame(fin, "fragment3"), 2), failed, 0},
		{"5.17", strings.Repeat(frame(fin, "fragment1")+frame(text, "fragment2")+frame(fin, "fragment3"), 2), failed, 0},
		{"5.18", frame(text, "fragment1") + frame(fin|text, "fragment2"), failed, 0},
		{"5.19", five, fiveBack, 0},
		{"5.20", five, fiveBack, 7},
	}
	cs = append(cs, chopped("5", 3, two+goodbye, both+finished)...)
	cs = append(cs, chopped("5", 6, around, "pong ping payload|"+both+finished)...)
	cs = append(cs, chopped("5", 9, frame(fin, "non-continuation payload")+helloT, failed)...)
	return append(cs, chopped("5", 12, frame(0, "non-continuation payload")+helloT, failed)...)
}

func closeFrames() (cs []autobahn) {
	reason := strings.Repeat("*", 123)
	cs = []autobahn{
		{"7.1.1", helloT + goodbye, echo("Hello") + finished, 0},
		{"7.1.2", goodbye + goodbye, finished, 0},
		{"7.1.3", goodbye + frame(fin|ping, ""), finished, 0},
		{"7.1.4", goodbye + helloT, finished, 0},
		{"7.1.5", frame(text, "fragment1") + goodbye + frame(fin, "fragment2"), finished, 0},
		{"7.1.6", large(fin|text, strings.Repeat("*", 256<<10)) + goodbye + frame(fin|ping, ""), echo(strings.Repeat("*", 256<<10)) + finished, 0},
		{"7.3.1", frame(fin|close8, ""), "close", 0},
		{"7.3.2", frame(fin|close8, "a"), failed, 0},
		{"7.3.3", goodbye, finished, 0},
		{"7.3.4", frame(fin|close8, "\x03\xe8Hello World!"), finished, 0},
		{"7.3.5", frame(fin|close8, "\x03\xe8"+reason), finished, 0},
		{"7.3.6", frame(fin|close8, "\x03\xe8"+reason+"*"), failed, 0},
		{"7.5.1", frame(fin|close8, "\x03\xe8"+greek+"\xed\xa0\x80edited"), badUTF8, 0},
	}
	for i, code := range []uint16{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999} {
		payload := string(binary.BigEndian.AppendUint16(nil, code))
		cs = append(cs, autobahn{fmt.Sprint("7.7.", i+1), frame(fin|close8, payload), fmt.Sprint("close ", code), 0})
	}
	for i, code := range []uint16{0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999} {
		payload := string(binary.BigEndian.AppendUint16(nil, code))
		cs = append(cs, autobahn{fmt.Sprint("7.9.", i+1), frame(fin|close8, payload), failed, 0})
	}
	for i, code := range []uint16{5000, 65535} {
		payload := string(binary.BigEndian.AppendUint16(nil, code))
		cs = append(cs, autobahn{fmt.Sprint("7.13.", i+1), frame(fin|close8, payload), failed, 0})
	}
	return cs
}

// limits are the cases of group 9, with smaller messages and fewer of them.
func limits() (cs []autobahn) {
	for group, op := range map[int]byte{1: text, 2: bin} {
		for i, size := range []int{64 << 10, 256 << 10, 1 << 20} {
			data := strings.Repeat("*", size)
			cs = append(cs, autobahn{fmt.Sprintf("9.%d.%d", group, i+1), large(fin|op, data) + goodbye, echo(data) + finished, 0})
		}
		data := strings.Repeat("*", 256<<10)
		for i, size := range []int{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10} {
			sends := frame(op, "")
			for range len(data) / size {
				sends += large(0, data[:size])
			}
			cs = append(cs, autobahn{fmt.Sprintf("9.%d.%d", group+2, i+1), sends + frame(fin, "") + goodbye, echo(data) + finished, 0})
		}
		for i, piece := range []int{64, 128, 256, 512, 1 << 10, 2 << 10} {
			cs = append(cs, autobahn{fmt.Sprintf("9.%d.%d", group+4, i+1), large(fin|op, data) + goodbye, echo(data) + finished, piece * 16})
		}
		for i, size := range []int{0, 16, 64, 256, 1 << 10, 4 << 10} {
			sends, want := strings.Repeat(large(fin|op, data[:size]), 100), strings.Repeat(echo(data[:size]), 100)
			cs = append(cs, autobahn{fmt.Sprintf("9.%d.%d", group+6, i+1), sends + goodbye, want + finished, 0})
		}
	}
	return cs
}

// large is frame for payloads of any size.
func large(first byte, payload string) string {
	if len(payload) <= 0xffff {
		return frame(first, payload)
	}
	return string(binary.BigEndian.AppendUint64([]byte{first, 127}, uint64(len(payload)))) + payload
}

// echo is what the client sends for a message.
func echo(data string) string {
	if len(data) > 1000 {
		data = fmt.Sprintf("%d bytes", len(data))
	}
	return data + "|"
}

// utf8Texts are the texts of group 6, by number, and whether they are UTF-8. Each is
// sent as one frame, and again in fragments of one byte.
func utf8Texts() map[string]map[bool][]string {
	return map[string]map[bool][]string{
		"6.2":  {true: {"Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4\xc3\xbc\xc3\xa0\xc3\xa1-UTF-8!!", greek}},
		"6.3":  {false: {greek + "\xed\xa0\x80edited"}},
		"6.4":  {false: {greek + "\xf4\x90\x80\x80edited"}},
		"6.5":  {true: {greek}},
		"6.6":  {true: {greek[:2], greek[:5], greek[:7], greek[:9], greek}, false: {greek[:1], greek[:3], greek[:4], greek[:6], greek[:8], greek[:10]}},
		"6.7":  {true: {"\x00", "\xc2\x80", "\xe0\xa0\x80", "\xf0\x90\x80\x80"}},
		"6.8":  {false: {"\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80"}},
		"6.9":  {true: {"\x7f", "\xdf\xbf", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf"}},
		"6.10": {false: {"\xf7\xbf\xbf\xbf", "\xfb\xbf\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf\xbf"}},
		"6.11": {true: {"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbd", "\xf4\x8f\xbf\xbf"}, false: {"\xf4\x90\x80\x80"}},
		"6.12": {false: {"\x80", "\xbf", "\x80\xbf", "\x80\xbf\x80", "\x80\xbf\x80\xbf", "\x80\xbf\x80\xbf\x80", "\x80\xbf\x80\xbf\x80\xbf", "\x80\x81\x82\x83\xbe\xbf"}},
		"6.13": {false: {"\xc0 \xc1 \xde \xdf ", "\xe0 \xe1 \xee \xef ", "\xf0 \xf1 \xf6 \xf7 ", "\xf8 \xf9 \xfa \xfb ", "\xfc \xfd "}},
		"6.14": {false: {"\xc0", "\xe0\x80", "\xf0\x80\x80", "\xf8\x80\x80\x80", "\xfc\x80\x80\x80\x80", "\xdf", "\xef\xbf", "\xf7\xbf\xbf", "\xfb\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf"}},
		"6.15": {false: {"\xc0\xe0\x80\xf0\x80\x80\xf8\x80\x80\x80\xfc\x80\x80\x80\x80\xdf\xef\xbf\xf7\xbf\xbf\xfb\xbf\xbf\xbf\xfd\xbf\xbf\xbf\xbf"}},
		"6.16": {false: {"\xfe", "\xff", "\xfe\xfe\xff\xff"}},
		"6.17": {false: {"\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xf8\x80\x80\x80\xaf", "\xfc\x80\x80\x80\x80\xaf"}},
		"6.18": {false: {"\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf8\x87\xbf\xbf\xbf", "\xfc\x83\xbf\xbf\xbf\xbf"}},
		"6.19": {false: {"\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xf8\x80\x80\x80\x80", "\xfc\x80\x80\x80\x80\x80"}},
		"6.20": {false: {"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbe\x80", "\xed\xbf\xbf"}},
		"6.21": {false: {"\xed\xa0\x80\xed\xb0\x80", "\xed\xa0\x80\xed\xbf\xbf", "\xed\xad\xbf\xed\xb0\x80", "\xed\xad\xbf\xed\xbf\xbf",
			"\xed\xae\x80\xed\xb0\x80", "\xed\xae\x80\xed\xbf\xbf", "\xed\xaf\xbf\xed\xb0\x80", "\xed\xaf\xbf\xed\xbf\xbf"}},
		"6.22": {true: nonCharacters()},
		"6.23": {true: {"\xef\xbf\xb9", "\xef\xbf\xba", "\xef\xbf\xbb", "\xef\xbf\xbc", "\xef\xbf\xbd", "\xef\xbf\xbe", "\xef\xbf\xbf"}},
	}
}

// nonCharacters are the last two code points of each plane.
func nonCharacters() (all []string) {
	for plane := range rune(17) {
		all = append(all, string(plane<<16|0xfffe), string(plane<<16|0xffff))
	}
	return all
}

func texts() (cs []autobahn) {
	cs = []autobahn{
		{"6.1.1", frame(fin|text, "") + goodbye, "|" + finished, 0},
		{"6.1.2", frame(text, "") + frame(0, "") + frame(fin, "") + goodbye, "|" + finished, 0},
		{"6.1.3", frame(text, "") + frame(0, "middle") + frame(fin, "") + goodbye, "middle|" + finished, 0},
		{"6.5.2", frame(text, greek[:5]) + frame(fin, greek[5:]) + goodbye, greek + "|" + finished, 0},
	}
	for group, all := range utf8Texts() {
		for valid, texts := range all {
			for i, said := range texts {
				want := badUTF8
				if valid {
					want = said + "|" + finished
				}
				single := frame(text, "")
				for _, b := range []byte(said) {
					single += frame(0, string([]byte{b}))
				}
				name := fmt.Sprintf("%s.%v.%d", group, valid, i+1)
				cs = append(cs, autobahn{name, frame(fin|text, said) + goodbye, want, 0},
					autobahn{name + " in bytes", single + frame(fin, "") + goodbye, want, 0})
			}
		}
	}
	return cs
}

func TestAutobahn(t *testing.T) {
	for name, cases := range map[string]func() []autobahn{
		"framing": framing, "pings": pings, "reserved": reserved, "fragmentation": fragmentation,
		"texts": texts, "closing": closeFrames, "limits": limits,
	} {
		t.Run(name, func(t *testing.T) {
			cases := cases()
			s := startFuzzer(t, cases)
			for i, c := range cases {
				ours := s.dial(t, i)
				for m, err := ours.Read(nil); err == nil; m, err = ours.Read(m.Data) {
					require.NoError(t, ours.Write(m), c.number)
				}
				require.NoError(t, ours.CloseNow())
				require.Equal(t, c.want, <-s.said, c.number)
			}
		})
	}
}
