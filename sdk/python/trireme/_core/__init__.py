"""What the blocking and the asyncio side share."""
