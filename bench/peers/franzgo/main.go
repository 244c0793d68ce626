// A mirror on franz-go, for comparison: it copies topics record by record, as fast as that client can.
//
// It consumes the partitions directly, without a group, and appends each record to the same partition of the mirror with
// an idempotent producer and acks=all. It keeps no positions and creates no topics: a restart copies from the start.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	batchBytes = flag.Int("batch-bytes", 900_000, "the largest batch, before compression")
	ca         = flag.String("ca", "", "a PEM file of authorities: connects over TLS, to brokers whose certificates they have issued")
	codec      = flag.String("codec", "none", "compression of the mirror: none or lz4")
	committed  = flag.Bool("committed", false, "leave out the records of aborted transactions")
	linger     = flag.Duration("linger", 0, "how long a batch waits for more records")
)

const (
	inFlightBytes  = 64 << 20 // records of one flow that are not acknowledged yet
	partitionBytes = 4 << 20  // of one partition in one Fetch response
)

func main() {
	log.SetFlags(0)
	flag.Usage = func() {
		log.Print("usage: franzgo [options] SOURCE,TARGET,TOPIC,MIRROR ... (addresses of brokers, names of topics)")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		log.Fatal("ERROR: nothing to copy")
	}
	// Records live for milliseconds: with a larger heap the collector runs less often.
	debug.SetGCPercent(400)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	flows := make(chan error)
	for _, flow := range flag.Args() {
		part := strings.Split(flow, ",")
		if len(part) != 4 {
			log.Fatalf("ERROR: %q is not SOURCE,TARGET,TOPIC,MIRROR", flow)
		}
		go func() { flows <- mirror(ctx, part[0], part[1], part[2], part[3]) }()
	}
	for range flag.Args() {
		if err := <-flows; err != nil {
			log.Fatalf("ERROR: %v", err)
		}
	}
}

// mirror copies a topic until it is terminated or a record cannot be copied.
func mirror(terminated context.Context, source, target, topic, mirror string) error {
	isolation := kgo.ReadUncommitted()
	if *committed {
		isolation = kgo.ReadCommitted()
	}
	compression := kgo.NoCompression()
	if *codec == "lz4" {
		compression = kgo.Lz4Compression()
	}
	var dialing []kgo.Opt
	if *ca != "" {
		config, err := tlsConfig(*ca)
		if err != nil {
			return err
		}
		dialing = append(dialing, kgo.DialTLSConfig(config))
	}
	consumer, err := kgo.NewClient(append(dialing,
		kgo.SeedBrokers(source),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(isolation),
		kgo.FetchMaxPartitionBytes(partitionBytes),
	)...)
	if err != nil {
		return err
	}
	defer consumer.Close()
	producer, err := kgo.NewClient(append(dialing,
		kgo.SeedBrokers(target),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(compression),
		kgo.ProducerBatchMaxBytes(int32(*batchBytes)),
		kgo.ProducerLinger(*linger),
		kgo.MaxBufferedRecords(1<<20),
		kgo.MaxBufferedBytes(inFlightBytes),
	)...)
	if err != nil {
		return err
	}
	defer producer.Close()
	ctx, fail := context.WithCancelCause(terminated)
	acknowledged := func(_ *kgo.Record, err error) {
		if err != nil {
			fail(err)
		}
	}
	for ctx.Err() == nil {
		fetches := consumer.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) { fail(err) })
		// The record itself is passed on: key, value, headers, timestamp and partition stay as they are.
		fetches.EachRecord(func(record *kgo.Record) {
			record.Topic = mirror
			producer.Produce(ctx, record, acknowledged)
		})
	}
	if terminated.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

func tlsConfig(file string) (*tls.Config, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", file)
	}
	return &tls.Config{RootCAs: authorities}, nil
}
