import { layer } from "../../../../src/adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import { rateLimiterContract } from "../../../contracts/RateLimiter.ts"

rateLimiterContract("in process", layer)
