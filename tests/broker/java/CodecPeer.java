import io.confluent.parallelconsumer.offsets.OffsetMapCodecManager;
import io.confluent.parallelconsumer.offsets.OffsetMapCodecManager.HighestOffsetAndIncompletes;
import io.confluent.parallelconsumer.offsets.OffsetSimultaneousEncoder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;

/**
 * Answers each line of standard input with one line, using the library's own encoder and reader.
 *
 * <p>{@code encode BASE HIGHEST RANGES} is answered with {@code NAME=METADATA} for each encoding that it can make, and
 * {@code smallest=METADATA} for the one that it would commit. {@code decode BASE METADATA} is answered with {@code
 * HIGHEST RANGES}. Ranges are incomplete offsets, {@code first-last}, inclusive, joined by commas; {@code -} is none.
 * Whatever the library throws is answered with {@code ! REASON}.
 */
final class CodecPeer {
    public static void main(String[] arguments) throws Exception {
        OffsetSimultaneousEncoder.compressionForced = true; // otherwise zstd is made only of large bodies
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            try {
                long base = Long.parseLong(words[1]);
                out.println(words[0].equals("encode")
                        ? encode(base, Long.parseLong(words[2]), offsets(words[3]))
                        : decode(base, words.length > 2 ? words[2] : ""));
            } catch (Exception problem) {
                out.println("! " + problem.toString().replace('\n', ' '));
            }
        }
        out.flush();
    }

    private static String encode(long base, long highest, SortedSet<Long> incomplete) throws Exception {
        OffsetSimultaneousEncoder encoder = new OffsetSimultaneousEncoder(base, highest, incomplete).invoke();
        List<String> answers = new ArrayList<>();
        encoder.getEncodingMap().forEach((encoding, body) -> {
            byte[] whole = new byte[body.length + 1];
            whole[0] = encoding.magicByte;
            System.arraycopy(body, 0, whole, 1, body.length);
            answers.add(encoding.name() + "=" + Base64.getEncoder().encodeToString(whole));
        });
        answers.add("smallest=" + Base64.getEncoder().encodeToString(encoder.packSmallest()));
        return String.join(" ", answers);
    }

    private static String decode(long base, String metadata) throws Exception {
        HighestOffsetAndIncompletes found =
                OffsetMapCodecManager.deserialiseIncompleteOffsetMapFromBase64(base, metadata);
        return found.getHighestSeenOffset().orElseThrow() + " " + ranges(found.getIncompleteOffsets());
    }

    private static SortedSet<Long> offsets(String ranges) {
        SortedSet<Long> offsets = new TreeSet<>();
        if (ranges.equals("-")) {
            return offsets;
        }
        for (String range : ranges.split(",")) {
            String[] ends = range.split("-");
            for (long offset = Long.parseLong(ends[0]); offset <= Long.parseLong(ends[1]); offset++) {
                offsets.add(offset);
            }
        }
        return offsets;
    }

    private static String ranges(SortedSet<Long> offsets) {
        List<String> ranges = new ArrayList<>();
        long first = Long.MIN_VALUE;
        long last = Long.MIN_VALUE;
        for (long offset : offsets) {
            if (first != Long.MIN_VALUE && offset == last + 1) {
                last = offset;
                continue;
            }
            if (first != Long.MIN_VALUE) {
                ranges.add(first + "-" + last);
            }
            first = offset;
            last = offset;
        }
        if (first != Long.MIN_VALUE) {
            ranges.add(first + "-" + last);
        }
        return ranges.isEmpty() ? "-" : String.join(",", ranges);
    }
}
