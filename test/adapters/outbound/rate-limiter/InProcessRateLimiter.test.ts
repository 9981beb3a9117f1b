import { layer } from "../../../../src/adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import { testRateLimiter } from "../../../contracts/RateLimiter.ts"

testRateLimiter(layer)
