// A service with one limit of the kinds that services have without saying so, and healthy ones
// beside them. It exports nothing: what limits it shows from outside alone.
//
// Arguments: the kind, and how many it serves at once where that is its limit. The first line on
// standard output is its URL.
package main

import (
	"fmt"
	"io"
	"math"
	"math/rand"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const ms = time.Millisecond

var (
	mu    sync.Mutex
	all   sync.RWMutex
	count atomic.Int64
	first sync.Once
	start time.Time
)

// The time since the first request.
func age() time.Duration {
	first.Do(func() { start = time.Now() })
	return time.Since(start)
}

func wait(d time.Duration) { time.Sleep(d) }

func vary(mean time.Duration) { wait(time.Duration(rand.ExpFloat64() * float64(mean))) }

// Work of a fixed amount, about a millisecond a unit.
func work(units int) uint64 {
	x := uint64(1)
	for i := 0; i < units*700_000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

// Places that waiters get in the order of `next`: it says which of n is served.
type places struct {
	sync.Mutex
	free  int
	queue []chan struct{}
	next  func(n int) int
}

func (p *places) with(do func()) {
	p.Lock()
	if p.free > 0 {
		p.free--
		p.Unlock()
	} else {
		turn := make(chan struct{})
		p.queue = append(p.queue, turn)
		p.Unlock()
		<-turn
	}
	do()
	p.Lock()
	defer p.Unlock()
	if n := len(p.queue); n > 0 {
		i := p.next(n)
		close(p.queue[i])
		p.queue = append(p.queue[:i], p.queue[i+1:]...)
	} else {
		p.free++
	}
}

func locked(m sync.Locker, do func()) {
	m.Lock()
	defer m.Unlock()
	do()
}

// Whether one more may pass, at 100/s with a burst of 20.
func bucket() func() bool {
	tokens, last := 20.0, time.Now()
	return func() (pass bool) {
		locked(&mu, func() {
			now := time.Now()
			tokens, last = math.Min(20, tokens+now.Sub(last).Seconds()*100), now
			if pass = tokens >= 1; pass {
				tokens--
			}
		})
		return pass
	}
}

// What a request does, and the status of its response.
func service(kind string, size int) func() int {
	ok := func(do func()) func() int { return func() int { do(); return 200 } }
	slots := make(chan struct{}, size)
	within := func(do func()) { slots <- struct{}{}; do(); <-slots }
	switch kind {
	case "lock":
		return ok(func() { locked(&mu, func() { wait(5 * ms) }) })
	case "lock-cpu":
		return ok(func() { locked(&mu, func() { work(2) }) })
	case "lock-heavy":
		return ok(func() {
			locked(&mu, func() {
				if count.Add(1)%20 == 0 {
					wait(49 * ms)
				}
				wait(ms)
			})
		})
	case "lock-outside":
		return ok(func() { wait(6 * ms); locked(&mu, func() { wait(6 * ms) }) })
	case "locks":
		var locks [2]sync.Mutex
		return ok(func() { locked(&locks[count.Add(1)%2], func() { wait(8 * ms) }) })
	case "pool":
		return ok(func() { within(func() { wait(30 * ms) }) })
	case "pool-slow":
		return ok(func() { within(func() { wait(70 * ms) }) })
	case "pool-vary":
		return ok(func() { within(func() { vary(30 * ms) }) })
	case "pool-newest":
		p := &places{free: size, next: func(n int) int { return n - 1 }}
		return ok(func() { p.with(func() { wait(20 * ms) }) })
	case "pool-random":
		p := &places{free: size, next: rand.Intn}
		return ok(func() { p.with(func() { wait(20 * ms) }) })
	case "pool-timeout":
		return func() int {
			select {
			case slots <- struct{}{}:
				wait(40 * ms)
				<-slots
				return 200
			case <-time.After(200 * ms):
				return 500
			}
		}
	case "pool-full":
		queue := make(chan struct{}, size+20)
		return func() int {
			select {
			case queue <- struct{}{}:
				within(func() { wait(20 * ms) })
				<-queue
				return 200
			default:
				return 503
			}
		}
	case "limiter", "limiter-503":
		status, pass := map[string]int{"limiter": 429, "limiter-503": 503}[kind], bucket()
		return func() int {
			if !pass() {
				return status
			}
			wait(5 * ms)
			return 200
		}
	case "shaper":
		next := time.Now()
		return ok(func() {
			var at time.Time
			locked(&mu, func() {
				if now := time.Now(); next.Before(now) {
					next = now
				}
				at, next = next, next.Add(10*ms)
			})
			wait(time.Until(at))
		})
	case "stall":
		go func() {
			for {
				wait(1500 * ms)
				locked(&all, func() { wait(300 * ms) })
			}
		}()
		return ok(func() { locked(all.RLocker(), func() {}); wait(10 * ms) })
	case "step":
		return ok(func() {
			if age() > 3*time.Second {
				wait(50 * ms)
			}
			wait(10 * ms)
		})
	case "warm-up":
		return ok(func() {
			if age() < 1500*ms {
				wait(70 * ms)
			}
			wait(10 * ms)
		})
	case "drift":
		return ok(func() { wait(5*ms + age()/200) })
	case "hang":
		return ok(func() {
			if count.Add(1) > 300 {
				select {}
			}
			wait(10 * ms)
		})
	case "errors":
		return func() int {
			wait(5 * ms)
			return map[bool]int{true: 500, false: 200}[rand.Intn(10) < 3]
		}
	case "one-core":
		runtime.GOMAXPROCS(1)
		return ok(func() { work(2) })
	case "cpu":
		return ok(func() { work(4) })
	case "sleep", "connections":
		return ok(func() { wait(20 * ms) })
	case "vary":
		return ok(func() { vary(20 * ms) })
	case "spikes":
		return ok(func() {
			if rand.Intn(50) == 0 {
				wait(300 * ms)
			}
			wait(5 * ms)
		})
	case "two":
		return ok(func() {
			if rand.Intn(10) == 0 {
				wait(55 * ms)
			}
			wait(5 * ms)
		})
	}
	check(fmt.Errorf("no kind %q", kind))
	return nil
}

// A listener that accepts no more than this many connections at once.
type limited struct {
	net.Listener
	free chan struct{}
}

type counted struct {
	net.Conn
	once sync.Once
	free chan struct{}
}

func (c *counted) Close() error {
	c.once.Do(func() { <-c.free })
	return c.Conn.Close()
}

func (l limited) Accept() (net.Conn, error) {
	l.free <- struct{}{}
	conn, err := l.Listener.Accept()
	return &counted{Conn: conn, free: l.free}, err
}

func main() {
	kind, size := os.Args[1], 1
	if len(os.Args) > 2 {
		var err error
		size, err = strconv.Atoi(os.Args[2])
		check(err)
	}
	do := service(kind, size)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Printf("http://%s\n", listener.Addr())
	if kind == "connections" {
		listener = limited{listener, make(chan struct{}, size)}
	}
	check(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		age()
		w.WriteHeader(do())
		io.WriteString(w, "hello\n")
	})))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
